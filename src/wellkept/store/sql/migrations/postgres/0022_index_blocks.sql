-- Parts of search indexes that a new process need not build. PostgreSQL answers for agents without an index in memory
-- and has them loaded meanwhile, so these tables stay empty here.
CREATE TABLE index_blocks (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  embedder_id BIGINT NOT NULL,
  rewrites BIGINT NOT NULL,
  format INTEGER NOT NULL,
  entries BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, last_seq, first_seq)
);

CREATE TABLE index_changes (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  rewrites BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, rewrites, seq)
);

ALTER TABLE index_blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON index_blocks
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE index_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON index_changes
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
