-- Memories that could stand for several: proposed, then applied (and perhaps undone) or rejected. folds: the memories it
-- takes in, each with the version it was made from and what it takes to restore it.
CREATE TABLE proposals (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  tags TEXT NOT NULL,
  folds TEXT NOT NULL,
  reason TEXT NOT NULL,
  origin TEXT NOT NULL,
  state TEXT NOT NULL,
  memory_seq INTEGER,
  is_new INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  decided_at TEXT,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;
