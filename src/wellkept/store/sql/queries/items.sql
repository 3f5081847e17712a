-- Items: memories with a namespace and a key of the caller. The index memories_by_item_key finds them.

-- Always of one user, or of none.
-- name: find_item
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND namespace = :path AND item_key = :key
  AND item_key IS NOT NULL AND archived_at IS NULL

-- fragment: live_items
tenant_id = :tenant AND agent_id = :agent{seen} AND item_key IS NOT NULL AND held_at IS NULL AND {unended}

-- name: item_numbers
SELECT seq FROM memories
WHERE {live_items} AND {where}
ORDER BY coalesce(updated_at, created_at) DESC, seq DESC LIMIT :limit OFFSET :offset

-- name: item_namespaces
SELECT DISTINCT namespace FROM memories
WHERE {live_items} AND namespace >= :first AND namespace < :last
ORDER BY namespace LIMIT :limit

-- name: expired_items
SELECT seq FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND item_key IS NOT NULL AND archived_at IS NULL
  AND expires_at <= :now
ORDER BY seq LIMIT :limit

-- name: archive_expired_items
UPDATE memories SET archived_at = :now
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq {in_numbers} AND archived_at IS NULL AND expires_at <= :now

-- name: remove_archived_from_index
DELETE FROM memory_index WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq IN (
  SELECT m.seq FROM memories m
  WHERE m.tenant_id = :tenant AND m.agent_id = :agent AND m.seq {in_numbers} AND m.archived_at IS NOT NULL)

-- Not those that somebody archived before their end.
-- name: ended_items
SELECT seq FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND item_key IS NOT NULL AND expires_at <= archived_at
  AND archived_at <= :before
ORDER BY seq LIMIT :limit

-- name: forgotten_memories
SELECT seq FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND forgotten_at <= :before
ORDER BY seq LIMIT :limit

-- name: set_item_end
UPDATE memories SET expires_at = :until, ttl_seconds = :ttl_seconds
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq = :seq
