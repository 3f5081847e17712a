-- name: take_lease
INSERT INTO leases (name, holder, until) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.until <= :now OR leases.until > :latest OR leases.holder = excluded.holder

-- name: end_lease
DELETE FROM leases WHERE name = :name AND holder = :holder

-- name: list_aging
SELECT seq, importance, created_at, last_retrieved_at, expires_at, valid_to, category, user_id,
  coalesce(valid_to <= updated_at, FALSE)
FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = 'episode' AND archived_at IS NULL AND seq > :after
ORDER BY seq LIMIT :limit

-- name: count_aging
SELECT count(CASE WHEN expires_at <= :now THEN NULL ELSE 1 END), count(CASE WHEN expires_at <= :now THEN 1 END)
FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND kind = 'episode' AND archived_at IS NULL
  AND (valid_to IS NULL OR (valid_to > :now AND (updated_at IS NULL OR valid_to > updated_at)))

-- name: count_states
SELECT kind, {where} AS state, count(*) FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned}
GROUP BY 1, 2

-- name: prolong_memory
UPDATE memories SET expires_at = :until
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = :seq AND archived_at IS NULL AND expires_at < :until

-- The upper half of an entry's version counts how often its end moved, so that every index in memory notices.
-- name: prolong_entry
UPDATE memory_index SET expires_at = :until, version = version + 4294967296
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq = :seq

-- name: find_lease
SELECT holder FROM leases WHERE name = :name

-- name: find_lease_row
SELECT holder, until FROM leases WHERE name = :name

-- name: put_lease
INSERT INTO leases (name, holder, until) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until

-- name: add_lease
INSERT INTO leases (name, holder, until) VALUES (:name, :holder, :until) ON CONFLICT (name) DO NOTHING

-- name: extend_lease
UPDATE leases SET holder = holder || :more WHERE name = :name

-- name: replace_lease
UPDATE leases SET holder = :holder WHERE name = :name AND holder = :known
