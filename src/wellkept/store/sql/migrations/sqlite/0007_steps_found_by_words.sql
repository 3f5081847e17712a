-- Workflow steps get numbers of their tenant, as chunks and events have them: one more shelf. SQLite changes a CHECK by making
-- the table anew.
ALTER TABLE shelves RENAME TO shelves_before;

CREATE TABLE shelves (
  tenant_id TEXT NOT NULL,
  shelf TEXT NOT NULL CHECK (shelf IN ('knowledge', 'audit', 'workflow')),
  last_id INTEGER NOT NULL DEFAULT 0,
  last_hash TEXT NOT NULL DEFAULT '',
  revision INTEGER NOT NULL DEFAULT 0,
  rewrites INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, shelf)
) STRICT, WITHOUT ROWID;

INSERT INTO shelves (tenant_id, shelf, last_id, last_hash, revision, rewrites)
SELECT tenant_id, shelf, last_id, last_hash, revision, rewrites FROM shelves_before;

DROP TABLE shelves_before;

-- The words of a step, in the order in which steps were recorded: read into memory, not searched here.
CREATE TABLE step_index (
  tenant_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  workflow_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  terms BLOB NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, workflow_id, position)
    REFERENCES workflow_steps (tenant_id, workflow_id, position) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX step_index_by_step ON step_index (tenant_id, workflow_id, position);

CREATE INDEX workflows_by_name ON workflows (tenant_id, name, created_at);
