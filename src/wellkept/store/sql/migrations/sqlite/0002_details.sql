-- What a detail is searched by, and how long its text is.
ALTER TABLE details ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE details ADD COLUMN folded TEXT NOT NULL DEFAULT '';
ALTER TABLE details ADD COLUMN chars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE details ADD COLUMN lines INTEGER NOT NULL DEFAULT 0;

UPDATE details SET folded = lower(key || ' ' || type || ' ' || summary);

CREATE INDEX details_by_time ON details (tenant_id, agent_id, created_at, key);
CREATE INDEX details_by_content ON details (tenant_id, content_hash);

-- Contents of a database in memory. Those of a database in a file are files beside it.
CREATE TABLE detail_contents (
  tenant_id TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  size INTEGER NOT NULL,
  chars INTEGER NOT NULL,
  line_index BLOB NOT NULL,
  stored_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, content_hash)
) STRICT;

CREATE TABLE detail_chunks (
  tenant_id TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  position INTEGER NOT NULL,
  frame BLOB NOT NULL,
  PRIMARY KEY (tenant_id, content_hash, position),
  FOREIGN KEY (tenant_id, content_hash) REFERENCES detail_contents (tenant_id, content_hash) ON DELETE CASCADE
) STRICT;
