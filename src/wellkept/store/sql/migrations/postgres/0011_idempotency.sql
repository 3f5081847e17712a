-- Idempotency keys of requests, with the answer a retry gets. A row is committed together with the first write of its
-- request: while there is none, the request has written nothing.
CREATE TABLE idempotency_keys (
  tenant_id TEXT NOT NULL,
  key_hash TEXT COLLATE "C" NOT NULL,
  holder TEXT NOT NULL,
  request_hash TEXT NOT NULL DEFAULT '',
  status INTEGER,
  content_type TEXT NOT NULL DEFAULT '',
  answer BYTEA,
  size BIGINT NOT NULL DEFAULT 1000,
  created_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, key_hash)
);

-- The sum of the sizes of the newest ones is asked of this index alone.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (tenant_id, created_at, size);

ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON idempotency_keys
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
