-- Built without blocking writers (see store.postgres.engine): each statement is a transaction of its own.
-- What users said, by user: each turn is compared with it.
CREATE INDEX CONCURRENTLY memories_told ON memories (tenant_id, agent_id, user_id, seq) WHERE told IS NOT NULL;
