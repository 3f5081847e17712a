-- End users of an agent: '' where a record belongs to none. Metadata is a JSON object of the caller. Items are memories
-- with a namespace (a path of names), a key of the caller and, as their metadata, the value; ttl_seconds is set where
-- reading an item extends its life. Columns with constant defaults are added without rewriting any row.
ALTER TABLE memories ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE memories ADD COLUMN namespace TEXT;
ALTER TABLE memories ADD COLUMN item_key TEXT;
ALTER TABLE memories ADD COLUMN ttl_seconds REAL;

ALTER TABLE memory_versions ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

ALTER TABLE chat_sessions ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE chat_sessions ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

ALTER TABLE details ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

ALTER TABLE context_calls ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

ALTER TABLE proposals ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

ALTER TABLE kb_documents ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

-- The only user whose memories a key may reach; '': all users.
ALTER TABLE api_keys ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

-- Keyed hashes of erased texts, so that an import can leave them out.
CREATE TABLE erased_texts (
  tenant_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  erased_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, hash)
) STRICT;

-- Hashes of texts that recently appeared in a prompt, so that no process stores them as something new.
CREATE TABLE shown_texts (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  shown_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, hash),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX shown_texts_by_time ON shown_texts (tenant_id, agent_id, shown_at);
