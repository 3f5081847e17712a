-- What a question can ask besides words: in which conversation something was said, by whom, and when it was said or
-- became true (seconds since 1970).
ALTER TABLE memory_index ADD COLUMN session_id TEXT;
ALTER TABLE memory_index ADD COLUMN role TEXT NOT NULL DEFAULT 'user';
ALTER TABLE memory_index ADD COLUMN since BIGINT NOT NULL DEFAULT 0;

-- The rows of every tenant are filled in, so for the length of this transaction the owner may see them all.
ALTER TABLE memory_index NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;

UPDATE memory_index i
SET session_id = m.session_id, role = m.role,
    since = floor(extract(epoch FROM coalesce(m.valid_from, m.created_at)))::bigint
FROM memories m
WHERE m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq;

ALTER TABLE memory_index FORCE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
