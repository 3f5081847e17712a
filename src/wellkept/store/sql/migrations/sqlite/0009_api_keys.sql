-- Keys to a tenant's memories, by the hash of what the holder sends. A key names its tenant, so the tenant is known before
-- this table is asked, and it is walled in like every other one.
CREATE TABLE api_keys (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  hash TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
  name TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  expires_at TEXT,
  revoked_at TEXT,
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
