-- name: add_memory
INSERT INTO memories ({memory}, folded, folded_tags, content_hash)
VALUES ({:memory}, :folded, :folded_tags, :content_hash)

-- name: find_memory
SELECT {memory} FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = :seq

-- Conditions and order shared by all listings of memories.
-- fragment: listed
(NOT :is_past OR COALESCE(valid_from, created_at) <= :now) AND folded LIKE :needle ESCAPE '!' AND {where}
ORDER BY seq DESC LIMIT :limit

-- name: list_memories
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq < :before
  AND {listed}

-- name: list_episodes
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = 'episode' AND seq < :before
  AND {listed}

-- The second condition on kind enables the partial index of the other kinds.
-- name: list_memories_of_kind
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = :kind AND kind <> 'episode' AND seq < :before
  AND {listed}

-- Neither archived nor expired nor corrected. What a correction has ended stays so if the clock steps back.
-- fragment: unended
archived_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
  AND (valid_to IS NULL OR (valid_to > :now AND (updated_at IS NULL OR valid_to > updated_at)))

-- name: list_told
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND told IS NOT NULL AND held_at IS NULL AND {unended}
ORDER BY seq DESC LIMIT :limit

-- name: list_told_before
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND told IS NOT NULL AND forgotten_at IS NULL
  AND ended_as IN ('superseded', 'over') AND valid_to <= :now
ORDER BY seq DESC LIMIT :limit

-- name: told_texts
SELECT seq, text FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND told IS NOT NULL AND held_at IS NULL AND {unended}
ORDER BY seq DESC LIMIT :limit

-- name: find_same_memory
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND content_hash = :content_hash AND kind = :kind AND kind <> 'episode'
  AND {unended}
ORDER BY seq DESC LIMIT 1

-- name: last_episode
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND kind = 'episode' AND session_id = :session_id
  AND seq > (SELECT max(seq) FROM memories WHERE tenant_id = :tenant AND agent_id = :agent) - 300
ORDER BY seq DESC LIMIT 1

-- name: list_for_review
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND archived_at IS NULL AND flag IS NOT NULL
ORDER BY seq DESC LIMIT :limit

-- name: update_memory
UPDATE memories
SET text = :text, folded = :folded, tags = :tags, folded_tags = :folded_tags, scope = :scope, importance = :importance,
    category = :category, expires_at = :expires_at, archived_at = :archived_at, updated_at = :replaced_at,
    content_hash = :content_hash, valid_to = :valid_to, held_at = :held_at, flag = :flag,
    metadata = :metadata, origin = :origin, ttl_seconds = :ttl_seconds, told = :told, sources = :sources,
    ended_by = :ended_by, ended_as = :ended_as, forgotten_at = :forgotten_at, version = version + 1
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND version = :version
  AND user_id = :user_id

-- name: keep_version
INSERT INTO memory_versions (tenant_id, agent_id, seq, version, text, tags, importance, metadata, replaced_at)
SELECT tenant_id, agent_id, seq, version, text, tags, importance, metadata, :replaced_at FROM memories
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND version = :version

-- name: list_versions
-- users: the memory is looked up first
SELECT {version} FROM memory_versions
WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq AND version < :before
ORDER BY version DESC LIMIT :limit

-- name: delete_memory
DELETE FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq = :seq

-- name: beyond_kept
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = :kind AND kind <> 'episode'
ORDER BY seq DESC LIMIT :limit OFFSET :keep

-- name: count_kind_after
SELECT count(*) FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = :kind AND kind <> 'episode' AND seq > :seq

-- name: oldest_of_kind
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = :kind AND kind <> 'episode'
ORDER BY seq LIMIT :limit

-- name: oldest_low_trust
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = :kind AND kind <> 'episode'
  AND origin NOT IN ('user', 'agent')
ORDER BY seq LIMIT :limit

-- name: beyond_kept_episodes
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = 'episode'
ORDER BY seq DESC LIMIT :limit OFFSET :keep

-- name: oldest_low_trust_episodes
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = 'episode'
  AND origin NOT IN ('user', 'agent')
ORDER BY seq LIMIT :limit

-- name: remove_from_index
DELETE FROM memory_index WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq

-- name: renew_entry
UPDATE memory_index SET version = :version, expires_at = :ends_at
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq

-- State that the cache of an agent's index compares: the generation of the agent, the number of changes of
-- its index, and the number of changes other than appends.
-- name: memory_index_state
SELECT life, revision, rewrites FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: any_user
SELECT 1 FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND user_id > '' LIMIT 1

-- Version of the index entry of a memory: it also counts how often the end of the memory moved.
-- fragment: entry_version
(SELECT version FROM memory_index i
 WHERE i.tenant_id = memories.tenant_id AND i.agent_id = memories.agent_id AND i.seq = memories.seq)
