-- What is due is found by an index over all tenants, without visiting each. Like `tenants`, these tables hold ids, times
-- and counts only, nothing that anybody wrote, so row-level security is not needed and would hide them.

-- due_at: when maintenance visits the tenant; the default, which every change sets again, is "with the next run".
-- counts: its memories by kind and state, as the last visit found them. has_keys: false if it certainly has no API key.
ALTER TABLE tenants ADD COLUMN due_at TIMESTAMPTZ NOT NULL DEFAULT '2000-01-01 00:00:00+00';
ALTER TABLE tenants ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN has_keys BOOLEAN NOT NULL DEFAULT TRUE;

CREATE INDEX tenants_by_due_at ON tenants (due_at);

-- A row for each transaction that stored texts without a vector, so that writers do not wait for each other.
CREATE TABLE vector_queue (
  tenant_id TEXT NOT NULL,
  id BIGINT NOT NULL,
  texts INTEGER NOT NULL,
  due_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, id)
);

CREATE INDEX vector_queue_by_due_at ON vector_queue (due_at);

-- Texts may wait in any tenant; it is looked at once.
INSERT INTO vector_queue (tenant_id, id, texts, due_at) SELECT tenant_id, 0, 0, '2000-01-01 00:00:00+00' FROM tenants;

-- Limits that several servers share: when a bucket will be full again, and the tokens that were granted last. The names are
-- hashes. The table need not survive a crash.
CREATE UNLOGGED TABLE token_buckets (
  name TEXT NOT NULL PRIMARY KEY,
  full_at TIMESTAMPTZ NOT NULL,
  asked_at TIMESTAMPTZ NOT NULL,
  granted INTEGER NOT NULL
);
