-- What an agent was shown at each of its latest calls: ids, scores, digests and costs, never a copy of the text. Ids begin
-- with the time, so that they sort by it.
CREATE TABLE context_calls (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  session_id TEXT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  layout TEXT NOT NULL,
  budget BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  blocks JSONB NOT NULL,
  truncations JSONB NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

-- What tools said in a session, found without walking past everything else an agent remembers.
CREATE INDEX memories_tool_results ON memories (tenant_id, agent_id, session_id, seq) WHERE role = 'tool_result';

ALTER TABLE context_calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_calls FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON context_calls
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
