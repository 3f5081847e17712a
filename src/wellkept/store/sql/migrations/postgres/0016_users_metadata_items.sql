-- End users of an agent: '' where a record belongs to none. Metadata is a JSON object of the caller. Items are memories
-- with a namespace (a path of names), a key of the caller and, as their metadata, the value; ttl_seconds is set where
-- reading an item extends its life. Columns with constant defaults are added without rewriting any row.
ALTER TABLE memories ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN metadata JSONB NOT NULL DEFAULT '{}';
ALTER TABLE memories ADD COLUMN namespace TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN item_key TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN ttl_seconds DOUBLE PRECISION;

ALTER TABLE memory_versions ADD COLUMN metadata JSONB NOT NULL DEFAULT '{}';

ALTER TABLE chat_sessions ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE chat_sessions ADD COLUMN metadata JSONB NOT NULL DEFAULT '{}';

ALTER TABLE details ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE context_calls ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE proposals ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE kb_documents ADD COLUMN metadata JSONB NOT NULL DEFAULT '{}';

-- The only user whose memories a key may reach; '': all users.
ALTER TABLE api_keys ADD COLUMN user_id TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Keyed hashes of erased texts, so that an import can leave them out.
CREATE TABLE erased_texts (
  tenant_id TEXT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  erased_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);

-- Hashes of texts that recently appeared in a prompt, so that no process stores them as something new.
CREATE TABLE shown_texts (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  shown_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, hash),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX shown_texts_by_time ON shown_texts (tenant_id, agent_id, shown_at);

-- NOT VALID: the former constraint already held for all rows, so they need no scan under a lock.
ALTER TABLE memories DROP CONSTRAINT memories_kind_check;
ALTER TABLE memories ADD CONSTRAINT memories_kind_check
  CHECK (kind IN ('core', 'journal', 'note', 'episode', 'item')) NOT VALID;

ALTER TABLE erased_texts ENABLE ROW LEVEL SECURITY;
ALTER TABLE erased_texts FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON erased_texts
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE shown_texts ENABLE ROW LEVEL SECURITY;
ALTER TABLE shown_texts FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON shown_texts
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
