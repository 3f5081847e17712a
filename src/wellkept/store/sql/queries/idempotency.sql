-- name: take_key
INSERT INTO idempotency_keys (tenant_id, key_hash, holder, created_at, expires_at)
VALUES (:tenant, :key_hash, :holder, :at, :expires_at)
ON CONFLICT (tenant_id, key_hash) DO UPDATE SET holder = excluded.holder, request_hash = '', status = NULL,
  content_type = '', answer = NULL, size = excluded.size, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= :at OR idempotency_keys.holder = :holder

-- name: find_answer
SELECT created_at, request_hash, status, content_type, answer FROM idempotency_keys
WHERE tenant_id = :tenant AND key_hash = :key_hash AND expires_at > :now

-- name: keep_answer
UPDATE idempotency_keys SET request_hash = :request_hash, status = :status, content_type = :content_type,
  answer = :answer, size = :size
WHERE tenant_id = :tenant AND key_hash = :key_hash AND holder = :holder

-- name: drop_expired_answers
DELETE FROM idempotency_keys WHERE tenant_id = :tenant AND created_at <= :created_until

-- name: newest_excess_answer
SELECT created_at FROM (
  SELECT created_at, SUM(size) OVER (ORDER BY created_at DESC) AS total FROM idempotency_keys WHERE tenant_id = :tenant
) AS sized
WHERE total > :max_bytes ORDER BY created_at DESC LIMIT 1

-- name: drop_old_answers
DELETE FROM idempotency_keys WHERE tenant_id = :tenant AND created_at <= :at

-- name: erase_answers
UPDATE idempotency_keys SET answer = NULL, size = :size, holder = ''
WHERE tenant_id = :tenant AND (answer IS NOT NULL OR status IS NULL) AND holder <> :but_holder

-- name: erase_idempotency_keys
DELETE FROM idempotency_keys WHERE tenant_id = :tenant AND holder <> :but_holder
