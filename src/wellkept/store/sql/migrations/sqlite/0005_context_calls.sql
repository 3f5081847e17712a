-- What an agent was shown at each of its latest calls: ids, scores, digests and costs, never a copy of the text. Ids begin
-- with the time, so that they sort by it.
CREATE TABLE context_calls (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  at TEXT NOT NULL,
  layout TEXT NOT NULL,
  budget INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  blocks TEXT NOT NULL,
  truncations TEXT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

-- What tools said in a session, found without walking past everything else an agent remembers.
CREATE INDEX memories_tool_results ON memories (tenant_id, agent_id, session_id, seq) WHERE role = 'tool_result';
