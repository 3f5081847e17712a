-- name: add_allowance
INSERT INTO secret_allowances (tenant_id, hash, created_at) VALUES (:tenant, :hash, :now)
ON CONFLICT (tenant_id, hash) DO NOTHING

-- name: list_allowances
SELECT hash FROM secret_allowances WHERE tenant_id = :tenant

-- name: delete_allowance
DELETE FROM secret_allowances WHERE tenant_id = :tenant AND hash = :hash
