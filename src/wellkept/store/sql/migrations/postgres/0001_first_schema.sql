-- The first schema. Every table but the two registries belongs to tenants: tenant_id leads its primary key and is part of
-- every unique index and foreign key, so the same tables can be distributed by tenant. Ids that lists are ordered by compare
-- byte by byte (COLLATE "C"), as they do in SQLite.

-- One row per tenant that ever wrote something: a registry of ids, with nothing about anybody in it.
CREATE TABLE tenants (
  tenant_id TEXT NOT NULL PRIMARY KEY,
  created_at TIMESTAMPTZ NOT NULL
);

-- The embedders whose vectors this database has held. The active one is the newest row.
CREATE TABLE embedders (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  dimensions INTEGER NOT NULL
);

-- Who may do a thing that only one process at a time should do, and until when.
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  until TIMESTAMPTZ NOT NULL
);

-- last_seq is the counter behind memory ids and never goes back. revision rises with every change to the agent's
-- search index, rewrites only with those that are more than an append: caches compare both.
CREATE TABLE agents (
  tenant_id TEXT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  system_prompt TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  tools JSONB NOT NULL DEFAULT '[]',
  colour TEXT NOT NULL DEFAULT '',
  icon TEXT NOT NULL DEFAULT '',
  is_active BOOLEAN NOT NULL DEFAULT TRUE,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  last_seq BIGINT NOT NULL DEFAULT 0,
  revision BIGINT NOT NULL DEFAULT 0,
  rewrites BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, id)
);

-- valid_to: since when something else is true instead. held_at: kept apart until somebody has looked at it. flag: why one
-- should. folded and folded_tags are what exact search compares: case-folded in the program, the same way for every engine.
CREATE TABLE memories (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('core', 'journal', 'note', 'episode')),
  text TEXT NOT NULL,
  folded TEXT NOT NULL,
  tags JSONB NOT NULL,
  folded_tags TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('user', 'workspace', 'session')),
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool_result')),
  session_id TEXT,
  importance DOUBLE PRECISION NOT NULL CHECK (importance BETWEEN 0 AND 1),
  category TEXT,
  origin TEXT NOT NULL CHECK (origin IN ('user', 'agent', 'tool', 'import', 'model')),
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ,
  expires_at TIMESTAMPTZ,
  last_retrieved_at TIMESTAMPTZ,
  archived_at TIMESTAMPTZ,
  version BIGINT NOT NULL,
  content_hash TEXT NOT NULL,
  supersedes BIGINT,
  valid_from TIMESTAMPTZ,
  valid_to TIMESTAMPTZ,
  held_at TIMESTAMPTZ,
  flag TEXT,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

-- Episodes are the many; the few of the other kinds are found without walking past them.
CREATE INDEX memories_by_kind ON memories (tenant_id, agent_id, kind, seq) WHERE kind <> 'episode';

-- Whether the same thing is known already.
CREATE INDEX memories_by_content ON memories (tenant_id, agent_id, content_hash) WHERE kind <> 'episode';

-- What waits for somebody to look at it.
CREATE INDEX memories_flagged ON memories (tenant_id, agent_id, seq) WHERE flag IS NOT NULL;

-- What a memory said before each edit.
CREATE TABLE memory_versions (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  version BIGINT NOT NULL,
  text TEXT NOT NULL,
  tags JSONB NOT NULL,
  importance DOUBLE PRECISION NOT NULL,
  replaced_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, seq, version),
  FOREIGN KEY (tenant_id, agent_id, seq) REFERENCES memories (tenant_id, agent_id, seq) ON DELETE CASCADE
);

-- What search needs of a memory and nothing else. words: the stemmed terms, cut in the program. embedding: NULL, or another
-- embedder's: waits for embedding. One agent's vectors are compared exactly, so they need no index of their own.
CREATE TABLE memory_index (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  version BIGINT NOT NULL,
  kind TEXT NOT NULL,
  expires_at TIMESTAMPTZ,
  words TSVECTOR NOT NULL,
  length INTEGER NOT NULL,
  embedder_id INTEGER,
  embedding HALFVEC,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id, seq) REFERENCES memories (tenant_id, agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX memory_index_words ON memory_index USING gin (words);

CREATE INDEX memory_index_by_embedder ON memory_index (tenant_id, embedder_id) WHERE embedder_id IS NULL;

-- What looks like a secret but is none, by its hash: never the text itself.
CREATE TABLE secret_allowances (
  tenant_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);

CREATE TABLE chat_sessions (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  summary TEXT NOT NULL DEFAULT '',
  summarized_count BIGINT NOT NULL DEFAULT 0,
  message_count BIGINT NOT NULL DEFAULT 0,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX chat_sessions_by_agent ON chat_sessions (tenant_id, agent_id, updated_at);

CREATE TABLE chat_messages (
  tenant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  position BIGINT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  content TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, session_id, position),
  FOREIGN KEY (tenant_id, session_id) REFERENCES chat_sessions (tenant_id, id) ON DELETE CASCADE
);

-- The content of a detail is kept apart, under its hash.
CREATE TABLE details (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  key TEXT NOT NULL,
  type TEXT NOT NULL,
  summary TEXT NOT NULL,
  session_id TEXT,
  metadata JSONB NOT NULL DEFAULT '{}',
  content_hash TEXT NOT NULL,
  size BIGINT NOT NULL,
  is_active BOOLEAN NOT NULL DEFAULT TRUE,
  created_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, key),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX details_by_session ON details (tenant_id, agent_id, session_id, created_at);

-- A tenant's counters for its shared shelves, as an agent's row has them for its memories.
CREATE TABLE shelves (
  tenant_id TEXT NOT NULL,
  shelf TEXT NOT NULL CHECK (shelf IN ('knowledge', 'audit')),
  last_id BIGINT NOT NULL DEFAULT 0,
  last_hash TEXT NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  rewrites BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, shelf)
);

CREATE TABLE kb_documents (
  tenant_id TEXT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  title TEXT NOT NULL,
  category TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT '',
  content_hash TEXT NOT NULL,
  is_published BOOLEAN NOT NULL DEFAULT TRUE,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, id)
);

CREATE TABLE kb_chunks (
  tenant_id TEXT NOT NULL,
  id BIGINT NOT NULL,
  document_id TEXT NOT NULL,
  position BIGINT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, document_id, position),
  FOREIGN KEY (tenant_id, document_id) REFERENCES kb_documents (tenant_id, id) ON DELETE CASCADE
);

-- Shared by a whole tenant, so it may be large: its vectors have an approximate index for each embedder, made when the
-- embedder is registered, because such an index has to know the number of dimensions.
CREATE TABLE chunk_index (
  tenant_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  version BIGINT NOT NULL,
  category TEXT NOT NULL,
  words TSVECTOR NOT NULL,
  length INTEGER NOT NULL,
  embedder_id INTEGER,
  embedding HALFVEC,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq) REFERENCES kb_chunks (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX chunk_index_words ON chunk_index USING gin (words);

CREATE INDEX chunk_index_by_embedder ON chunk_index (tenant_id, embedder_id) WHERE embedder_id IS NULL;

-- Each event's hash covers the one before it, so that a changed or missing row shows. The shelf's row holds the last.
CREATE TABLE audit_log (
  tenant_id TEXT NOT NULL,
  id BIGINT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  action TEXT NOT NULL,
  agent_id TEXT,
  message TEXT NOT NULL,
  folded TEXT NOT NULL,
  meta JSONB NOT NULL DEFAULT '{}',
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
);

CREATE TABLE workflows (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, id)
);

CREATE TABLE workflow_steps (
  tenant_id TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  position BIGINT NOT NULL,
  step_name TEXT NOT NULL,
  agent_id TEXT,
  status TEXT NOT NULL DEFAULT 'completed',
  output TEXT NOT NULL,
  folded TEXT NOT NULL,
  completed_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, workflow_id, position),
  FOREIGN KEY (tenant_id, workflow_id) REFERENCES workflows (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX workflow_steps_by_time ON workflow_steps (tenant_id, completed_at);

-- The same rows under the names and columns other programs know them by; to read, not to write.
CREATE VIEW agent_memories WITH (security_invoker = true) AS
SELECT tenant_id, agent_id, seq AS id, text AS content, kind AS memory_type, created_at, updated_at
FROM memories WHERE kind IN ('core', 'journal') AND archived_at IS NULL;

CREATE VIEW agent_memory WITH (security_invoker = true) AS
SELECT tenant_id, agent_id, seq AS id, session_id, role, text AS content, importance, created_at, expires_at
FROM memories WHERE kind = 'episode' AND archived_at IS NULL;

-- Below the program, the database itself shows a tenant's rows to nobody else: not to the owner of the tables (FORCE),
-- and to nobody at all when no tenant is set.
ALTER TABLE agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE agents FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON agents
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memories
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE memory_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory_versions
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE memory_index ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_index FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory_index
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE secret_allowances ENABLE ROW LEVEL SECURITY;
ALTER TABLE secret_allowances FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON secret_allowances
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE chat_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON chat_sessions
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE chat_messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_messages FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON chat_messages
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE details ENABLE ROW LEVEL SECURITY;
ALTER TABLE details FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON details
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE shelves ENABLE ROW LEVEL SECURITY;
ALTER TABLE shelves FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON shelves
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE kb_documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE kb_documents FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON kb_documents
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE kb_chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE kb_chunks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON kb_chunks
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE chunk_index ENABLE ROW LEVEL SECURITY;
ALTER TABLE chunk_index FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON chunk_index
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_log FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON audit_log
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE workflows ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflows FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON workflows
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE workflow_steps ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_steps FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON workflow_steps
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
