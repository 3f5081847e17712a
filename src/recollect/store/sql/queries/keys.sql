-- name: add_key
INSERT INTO api_keys ({key}, secret_hash) VALUES ({:key}, :hash) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: find_key
SELECT {key}, secret_hash FROM api_keys WHERE tenant_id = :tenant AND id = :id

-- name: list_keys
SELECT {key} FROM api_keys
WHERE tenant_id = :tenant AND (created_at > :at OR (created_at = :at AND id > :id))
ORDER BY created_at, id LIMIT :limit

-- name: revoke_key
UPDATE api_keys SET revoked_at = COALESCE(revoked_at, :at) WHERE tenant_id = :tenant AND id = :id

-- name: mark_key_used
UPDATE api_keys SET last_used_at = :at WHERE tenant_id = :tenant AND id = :id
