-- Idempotency keys of requests, with the answer a retry gets. A row is committed together with the first write of its
-- request: while there is none, the request has written nothing.
CREATE TABLE idempotency_keys (
  tenant_id TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  holder TEXT NOT NULL,
  request_hash TEXT NOT NULL DEFAULT '',
  status INTEGER,
  content_type TEXT NOT NULL DEFAULT '',
  answer BLOB,
  size INTEGER NOT NULL DEFAULT 1000,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, key_hash)
) STRICT;

-- The sum of the sizes of the newest ones is asked of this index alone.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (tenant_id, created_at, size);
