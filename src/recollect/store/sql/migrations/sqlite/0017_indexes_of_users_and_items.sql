-- Memories of one user, however many users the agent has.
CREATE INDEX memories_by_user ON memories (tenant_id, agent_id, user_id, seq);

-- Sessions of one user, the latest first.
CREATE INDEX chat_sessions_by_user ON chat_sessions (tenant_id, agent_id, user_id, updated_at);

-- One live item for a key. An item that was archived or deleted does not block it.
CREATE UNIQUE INDEX memories_by_item_key ON memories (tenant_id, agent_id, user_id, namespace, item_key)
  WHERE item_key IS NOT NULL AND archived_at IS NULL;
