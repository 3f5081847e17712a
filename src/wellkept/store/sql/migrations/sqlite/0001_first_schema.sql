-- The first schema. Every table but the two registries belongs to tenants: tenant_id leads its primary key and is part of
-- every unique index and foreign key, so the same tables can be distributed by tenant.

-- One row per tenant that ever wrote something: a registry of ids, with nothing about anybody in it.
CREATE TABLE tenants (
  tenant_id TEXT NOT NULL PRIMARY KEY,
  created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The embedders whose vectors this database has held. The active one is the newest row.
CREATE TABLE embedders (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  dimensions INTEGER NOT NULL
) STRICT;

-- Who may do a thing that only one process at a time should do, and until when.
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  until TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- last_seq is the counter behind memory ids and never goes back. revision rises with every change to the agent's
-- search index, rewrites only with those that are more than an append: caches compare both. life tells an agent from a
-- deleted one of the same name.
CREATE TABLE agents (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  system_prompt TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  tools TEXT NOT NULL DEFAULT '[]',
  colour TEXT NOT NULL DEFAULT '',
  icon TEXT NOT NULL DEFAULT '',
  is_active INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  last_seq INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL DEFAULT 0,
  rewrites INTEGER NOT NULL DEFAULT 0,
  life INTEGER NOT NULL DEFAULT (random()),
  PRIMARY KEY (tenant_id, id)
) STRICT;

-- valid_to: since when something else is true instead. held_at: kept apart until somebody has looked at it. flag: why one
-- should. folded and folded_tags are what exact search compares: case-folded in the program, the same way for every engine.
-- No CHECKs here: they cost a third of an insert, and only enums of the program reach these columns.
CREATE TABLE memories (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  folded TEXT NOT NULL,
  tags TEXT NOT NULL,
  folded_tags TEXT NOT NULL,
  scope TEXT NOT NULL,
  role TEXT NOT NULL,
  session_id TEXT,
  importance REAL NOT NULL,
  category TEXT,
  origin TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  expires_at TEXT,
  last_retrieved_at TEXT,
  archived_at TEXT,
  version INTEGER NOT NULL,
  content_hash TEXT NOT NULL,
  supersedes INTEGER,
  valid_from TEXT,
  valid_to TEXT,
  held_at TEXT,
  flag TEXT,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

-- Episodes are the many; the few of the other kinds are found without walking past them.
CREATE INDEX memories_by_kind ON memories (tenant_id, agent_id, kind, seq) WHERE kind <> 'episode';

-- Whether the same thing is known already.
CREATE INDEX memories_by_content ON memories (tenant_id, agent_id, content_hash) WHERE kind <> 'episode';

-- What waits for somebody to look at it.
CREATE INDEX memories_flagged ON memories (tenant_id, agent_id, seq) WHERE flag IS NOT NULL;

-- What a memory said before each edit.
CREATE TABLE memory_versions (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  text TEXT NOT NULL,
  tags TEXT NOT NULL,
  importance REAL NOT NULL,
  replaced_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, seq, version),
  FOREIGN KEY (tenant_id, agent_id, seq) REFERENCES memories (tenant_id, agent_id, seq) ON DELETE CASCADE
) STRICT;

-- What search needs of a memory and nothing else, so that one agent's index loads with one short scan. terms: eight
-- bytes a word (hash, count). vector: a scale and one byte a dimension; NULL, or another embedder's: waits for embedding.
CREATE TABLE memory_index (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  expires_at TEXT,
  terms BLOB NOT NULL,
  embedder_id INTEGER,
  vector BLOB,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id, seq) REFERENCES memories (tenant_id, agent_id, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_index_by_embedder ON memory_index (tenant_id, embedder_id) WHERE embedder_id IS NULL;

-- What looks like a secret but is none, by its hash: never the text itself.
CREATE TABLE secret_allowances (
  tenant_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE chat_sessions (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  summary TEXT NOT NULL DEFAULT '',
  summarized_count INTEGER NOT NULL DEFAULT 0,
  message_count INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX chat_sessions_by_agent ON chat_sessions (tenant_id, agent_id, updated_at);

CREATE TABLE chat_messages (
  tenant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  content TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, session_id, position),
  FOREIGN KEY (tenant_id, session_id) REFERENCES chat_sessions (tenant_id, id) ON DELETE CASCADE
) STRICT;

-- The content of a detail is kept apart, under its hash.
CREATE TABLE details (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  key TEXT NOT NULL,
  type TEXT NOT NULL,
  summary TEXT NOT NULL,
  session_id TEXT,
  metadata TEXT NOT NULL DEFAULT '{}',
  content_hash TEXT NOT NULL,
  size INTEGER NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, key),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX details_by_session ON details (tenant_id, agent_id, session_id, created_at);

-- A tenant's counters for its shared shelves, as an agent's row has them for its memories.
CREATE TABLE shelves (
  tenant_id TEXT NOT NULL,
  shelf TEXT NOT NULL CHECK (shelf IN ('knowledge', 'audit')),
  last_id INTEGER NOT NULL DEFAULT 0,
  last_hash TEXT NOT NULL DEFAULT '',
  revision INTEGER NOT NULL DEFAULT 0,
  rewrites INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, shelf)
) STRICT, WITHOUT ROWID;

CREATE TABLE kb_documents (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  title TEXT NOT NULL,
  category TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT '',
  content_hash TEXT NOT NULL,
  is_published INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE kb_chunks (
  tenant_id TEXT NOT NULL,
  id INTEGER NOT NULL,
  document_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, document_id, position),
  FOREIGN KEY (tenant_id, document_id) REFERENCES kb_documents (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE chunk_index (
  tenant_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  category TEXT NOT NULL,
  terms BLOB NOT NULL,
  embedder_id INTEGER,
  vector BLOB,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq) REFERENCES kb_chunks (tenant_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX chunk_index_by_embedder ON chunk_index (tenant_id, embedder_id) WHERE embedder_id IS NULL;

-- Each event's hash covers the one before it, so that a changed or missing row shows. The shelf's row holds the last.
CREATE TABLE audit_log (
  tenant_id TEXT NOT NULL,
  id INTEGER NOT NULL,
  at TEXT NOT NULL,
  action TEXT NOT NULL,
  agent_id TEXT,
  message TEXT NOT NULL,
  folded TEXT NOT NULL,
  meta TEXT NOT NULL DEFAULT '{}',
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE workflows (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE workflow_steps (
  tenant_id TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  step_name TEXT NOT NULL,
  agent_id TEXT,
  status TEXT NOT NULL DEFAULT 'completed',
  output TEXT NOT NULL,
  folded TEXT NOT NULL,
  completed_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, workflow_id, position),
  FOREIGN KEY (tenant_id, workflow_id) REFERENCES workflows (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX workflow_steps_by_time ON workflow_steps (tenant_id, completed_at);

-- The same rows under the names and columns other programs know them by; to read, not to write.
CREATE VIEW agent_memories AS
SELECT tenant_id, agent_id, seq AS id, text AS content, kind AS memory_type, created_at, updated_at
FROM memories WHERE kind IN ('core', 'journal') AND archived_at IS NULL;

CREATE VIEW agent_memory AS
SELECT tenant_id, agent_id, seq AS id, session_id, role, text AS content, importance, created_at, expires_at
FROM memories WHERE kind = 'episode' AND archived_at IS NULL;
