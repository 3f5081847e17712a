-- What is due in any tenant. These tables hold ids, times and counts only, so they are asked without a tenant, too.

-- Most find the mark set, and then change and lock nothing.
-- name: mark_due
UPDATE tenants SET due_at = :soon WHERE tenant_id = :tenant AND due_at > :soon

-- name: mark_all_due
UPDATE tenants SET due_at = :soon WHERE due_at > :soon

-- name: list_due_tenants
SELECT tenant_id FROM tenants WHERE due_at <= :now ORDER BY due_at, tenant_id

-- name: find_due_at
SELECT due_at FROM tenants WHERE tenant_id = :tenant

-- name: begin_visit
UPDATE tenants SET due_at = :began WHERE tenant_id = :tenant

-- A change meanwhile has set the mark, which stays.
-- name: end_visit
UPDATE tenants SET counts = :counts, due_at = CASE WHEN due_at = :began THEN :next ELSE due_at END
WHERE tenant_id = :tenant

-- The first end of an item, and the oldest kept answer.
-- users: of all users
-- name: find_first_ends
SELECT (SELECT min(expires_at) FROM memories WHERE tenant_id = :tenant AND item_key IS NOT NULL AND archived_at IS NULL),
  (SELECT min(created_at) FROM idempotency_keys WHERE tenant_id = :tenant)

-- name: sum_counts
SELECT key, sum(CAST(value AS INTEGER)) FROM tenants, json_each(counts) GROUP BY key

-- name: count_bytes
SELECT {store_bytes}

-- Records of the whole store by name, its size, and the texts that wait for a vector.
-- name: read_totals
SELECT name, holder AS value, until AS at FROM leases WHERE name {in_names}
UNION ALL
SELECT 'bytes', CAST({store_bytes} AS TEXT), NULL
UNION ALL
SELECT 'waiting', CAST(coalesce(sum(texts), 0) AS TEXT), NULL FROM vector_queue

-- name: queue_texts
INSERT INTO vector_queue (tenant_id, id, texts, due_at) VALUES (:tenant, :id, :texts, :due_at)

-- name: list_waiting_tenants
SELECT DISTINCT tenant_id FROM vector_queue WHERE due_at <= :until ORDER BY tenant_id

-- name: list_queue
SELECT id FROM vector_queue WHERE tenant_id = :tenant ORDER BY id LIMIT :limit

-- name: leave_queue
DELETE FROM vector_queue WHERE tenant_id = :tenant AND id = :id

-- name: list_tenants_with_keys
SELECT tenant_id FROM tenants WHERE has_keys ORDER BY tenant_id

-- name: note_key
UPDATE tenants SET has_keys = TRUE WHERE tenant_id = :tenant

-- name: note_no_key
UPDATE tenants SET has_keys = FALSE WHERE tenant_id = :tenant

-- name: end_old_leases
DELETE FROM leases WHERE until < :before AND (name LIKE 'maintain%' OR name LIKE 'embed %')
