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

-- name: add_login
INSERT INTO console_logins (tenant_id, hash, key_id, is_link, created_at, expires_at)
VALUES (:tenant, :hash, :key_id, :is_link, :at, :expires_at)

-- name: prune_logins
DELETE FROM console_logins WHERE tenant_id = :tenant AND (expires_at <= :at OR hash IN (
  SELECT hash FROM console_logins WHERE tenant_id = :tenant ORDER BY created_at DESC, hash LIMIT :beyond OFFSET :most
))

-- name: find_login
SELECT key_id, expires_at FROM console_logins WHERE tenant_id = :tenant AND hash = :hash AND is_link = :is_link

-- name: delete_login
DELETE FROM console_logins WHERE tenant_id = :tenant AND hash = :hash AND is_link = :is_link

-- name: delete_logins
DELETE FROM console_logins WHERE tenant_id = :tenant
