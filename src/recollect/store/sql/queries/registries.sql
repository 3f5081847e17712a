-- Statements both engines share, a file for each kind of record. Every one that touches a tenant's rows names the tenant.
-- This file: what belongs to the whole database.

-- name: add_tenant
INSERT INTO tenants (tenant_id, created_at) VALUES (:tenant, :now) ON CONFLICT (tenant_id) DO NOTHING

-- name: list_tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id

-- name: active_embedder
SELECT id, name, dimensions FROM embedders ORDER BY id DESC LIMIT 1

-- name: add_embedder
INSERT INTO embedders (id, name, dimensions) VALUES (:id, :name, :dimensions) ON CONFLICT (id) DO NOTHING
