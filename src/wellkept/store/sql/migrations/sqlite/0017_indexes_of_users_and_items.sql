-- Memories of one user, however many users the agent has.
CREATE INDEX memories_by_user ON memories (tenant_id, agent_id, user_id, seq);

-- Their notes, core memories, journal entries and items.
CREATE INDEX memories_by_user_and_kind ON memories (tenant_id, agent_id, user_id, kind, seq)
  WHERE kind <> 'episode';

-- Duplicates are looked up among the records of one user.
CREATE INDEX memories_by_user_and_content ON memories (tenant_id, agent_id, user_id, content_hash, kind, seq)
  WHERE kind <> 'episode';
DROP INDEX memories_by_content;

-- Their memories to review, and proposals.
CREATE INDEX memories_flagged_by_user ON memories (tenant_id, agent_id, user_id, seq) WHERE flag IS NOT NULL;
CREATE INDEX proposals_by_user ON proposals (tenant_id, agent_id, user_id, seq);

-- Details of one user, the latest first.
CREATE INDEX details_by_user ON details (tenant_id, agent_id, user_id, created_at, key);

-- Sessions of one user, the latest first.
CREATE INDEX chat_sessions_by_user ON chat_sessions (tenant_id, agent_id, user_id, updated_at, id);

-- One live item for a key. An item that was archived or deleted does not block it.
CREATE UNIQUE INDEX memories_by_item_key ON memories (tenant_id, agent_id, user_id, namespace, item_key)
  WHERE item_key IS NOT NULL AND archived_at IS NULL;
