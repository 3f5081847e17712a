-- Statements shared by both engines, one file per kind of record. Every statement on tenants' rows names the tenant.
-- This file: statements on tables of the whole database.

-- name: add_tenant
INSERT INTO tenants (tenant_id, created_at, has_keys) VALUES (:tenant, :now, FALSE) ON CONFLICT (tenant_id) DO NOTHING

-- name: list_tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id

-- name: active_embedder
SELECT id, name, dimensions FROM embedders ORDER BY id DESC LIMIT 1

-- name: add_embedder
INSERT INTO embedders (id, name, dimensions) VALUES (:id, :name, :dimensions) ON CONFLICT (id) DO NOTHING
