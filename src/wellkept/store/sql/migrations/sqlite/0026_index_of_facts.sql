-- What users said, by user: each turn is compared with it.
CREATE INDEX memories_told ON memories (tenant_id, agent_id, user_id, seq) WHERE told IS NOT NULL;
