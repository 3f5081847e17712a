-- What is due is found by an index over all tenants, without visiting each.

-- due_at: when maintenance visits the tenant; the default, which every change sets again, is "with the next run".
-- counts: its memories by kind and state, as the last visit found them. has_keys: false if it certainly has no API key.
ALTER TABLE tenants ADD COLUMN due_at TEXT NOT NULL DEFAULT '2000-01-01T00:00:00.000000Z';
ALTER TABLE tenants ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN has_keys INTEGER NOT NULL DEFAULT 1;

CREATE INDEX tenants_by_due_at ON tenants (due_at);

-- A row for each transaction that stored texts without a vector.
CREATE TABLE vector_queue (
  tenant_id TEXT NOT NULL,
  id INTEGER NOT NULL,
  texts INTEGER NOT NULL,
  due_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX vector_queue_by_due_at ON vector_queue (due_at);

-- Texts may wait in any tenant; it is looked at once.
INSERT INTO vector_queue (tenant_id, id, texts, due_at)
SELECT tenant_id, 0, 0, '2000-01-01T00:00:00.000000Z' FROM tenants;
