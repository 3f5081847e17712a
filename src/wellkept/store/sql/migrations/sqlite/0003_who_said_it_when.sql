-- What a question can ask besides words: in which conversation something was said, by whom, and when it was said or
-- became true (seconds since 1970).
ALTER TABLE memory_index ADD COLUMN session_id TEXT;
ALTER TABLE memory_index ADD COLUMN role TEXT NOT NULL DEFAULT 'user';
ALTER TABLE memory_index ADD COLUMN since INTEGER NOT NULL DEFAULT 0;

UPDATE memory_index SET (session_id, role, since) = (
  SELECT m.session_id, m.role, CAST(strftime('%s', coalesce(m.valid_from, m.created_at)) AS INTEGER) FROM memories m
  WHERE m.tenant_id = memory_index.tenant_id AND m.agent_id = memory_index.agent_id AND m.seq = memory_index.seq
);
