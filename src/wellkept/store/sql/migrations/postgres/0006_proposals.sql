-- Memories that could stand for several: proposed, then applied (and perhaps undone) or rejected. folds: the memories it
-- takes in, each with the version it was made from and what it takes to restore it.
CREATE TABLE proposals (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  tags JSONB NOT NULL,
  folds JSONB NOT NULL,
  reason TEXT NOT NULL,
  origin TEXT NOT NULL,
  state TEXT NOT NULL,
  memory_seq BIGINT,
  is_new BOOLEAN NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  decided_at TIMESTAMPTZ,
  PRIMARY KEY (tenant_id, agent_id, seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE proposals ENABLE ROW LEVEL SECURITY;
ALTER TABLE proposals FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON proposals
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
