-- A key can be limited to agents and to a highest trust; a fourth scope is for whoever runs the server.
ALTER TABLE api_keys ADD COLUMN agents JSONB NOT NULL DEFAULT '[]';

ALTER TABLE api_keys ADD COLUMN trust TEXT CHECK (trust IN ('user', 'agent', 'tool', 'import', 'model'));

ALTER TABLE api_keys DROP CONSTRAINT api_keys_scope_check;

ALTER TABLE api_keys ADD CONSTRAINT api_keys_scope_check CHECK (scope IN ('read', 'write', 'admin', 'operator'));
