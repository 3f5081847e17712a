-- What tells an agent from a later one of the same name, for what is held of it in memory. Those that are there already
-- share a number that none made from now on gets.
ALTER TABLE agents ADD COLUMN life BIGINT NOT NULL DEFAULT 0;

ALTER TABLE agents ALTER COLUMN life SET DEFAULT (1 + floor(random() * 9007199254740991))::bigint;

-- The words of memories are searched in memory now.
DROP INDEX memory_index_words;

-- A tenant's latest sessions, whoever's they are.
CREATE INDEX chat_sessions_by_time ON chat_sessions (tenant_id, updated_at, id);
