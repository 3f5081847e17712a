-- What a detail is searched by, and how long its text is.
ALTER TABLE details ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE details ADD COLUMN folded TEXT NOT NULL DEFAULT '';
ALTER TABLE details ADD COLUMN chars BIGINT NOT NULL DEFAULT 0;
ALTER TABLE details ADD COLUMN lines BIGINT NOT NULL DEFAULT 0;
-- Keys are compared byte by byte, as SQLite does.
ALTER TABLE details ALTER COLUMN key TYPE TEXT COLLATE "C";

-- A migration names no tenant, so for this one statement the owner of the table steps around the wall.
ALTER TABLE details NO FORCE ROW LEVEL SECURITY;
UPDATE details SET folded = lower(key || ' ' || type || ' ' || summary);
ALTER TABLE details FORCE ROW LEVEL SECURITY;

CREATE INDEX details_by_time ON details (tenant_id, agent_id, created_at, key);
CREATE INDEX details_by_content ON details (tenant_id, content_hash);

-- Contents by hash, cut into chunks that are compressed one by one.
CREATE TABLE detail_contents (
  tenant_id TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  size BIGINT NOT NULL,
  chars BIGINT NOT NULL,
  line_index BYTEA NOT NULL,
  stored_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, content_hash)
);

CREATE TABLE detail_chunks (
  tenant_id TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  position BIGINT NOT NULL,
  frame BYTEA NOT NULL,
  PRIMARY KEY (tenant_id, content_hash, position),
  FOREIGN KEY (tenant_id, content_hash) REFERENCES detail_contents (tenant_id, content_hash) ON DELETE CASCADE
);

-- They are compressed already.
ALTER TABLE detail_chunks ALTER COLUMN frame SET STORAGE EXTERNAL;

ALTER TABLE detail_contents ENABLE ROW LEVEL SECURITY;
ALTER TABLE detail_contents FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON detail_contents
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE detail_chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE detail_chunks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON detail_chunks
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
