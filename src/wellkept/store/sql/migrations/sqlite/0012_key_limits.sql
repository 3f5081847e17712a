-- A key can be limited to agents and to a highest trust; a fourth scope is for whoever runs the server. SQLite cannot
-- change a CHECK, so the table is made anew.
ALTER TABLE api_keys RENAME TO unlimited_keys;

CREATE TABLE api_keys (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  hash TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin', 'operator')),
  name TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  expires_at TEXT,
  revoked_at TEXT,
  agents TEXT NOT NULL DEFAULT '[]',
  trust TEXT CHECK (trust IN ('user', 'agent', 'tool', 'import', 'model')),
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

INSERT INTO api_keys (tenant_id, id, hash, scope, name, created_at, last_used_at, expires_at, revoked_at)
SELECT tenant_id, id, hash, scope, name, created_at, last_used_at, expires_at, revoked_at FROM unlimited_keys;

DROP TABLE unlimited_keys;
