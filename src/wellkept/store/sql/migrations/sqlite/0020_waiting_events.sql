-- Events of the audit log that are committed and not yet part of its chain. SQLite has one writer at a time, who adds
-- each event to the chain at once, so these tables stay empty here.
CREATE TABLE audit_lanes (
  tenant_id TEXT NOT NULL,
  lane INTEGER NOT NULL,
  last_place INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, lane)
) STRICT;

CREATE TABLE audit_waiting (
  tenant_id TEXT NOT NULL,
  lane INTEGER NOT NULL,
  place INTEGER NOT NULL,
  at TEXT NOT NULL,
  action TEXT NOT NULL,
  agent_id TEXT,
  message TEXT NOT NULL,
  meta TEXT NOT NULL,
  hash TEXT NOT NULL,
  is_refused INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, lane, place)
) STRICT;

ALTER TABLE shelves ADD COLUMN lanes TEXT NOT NULL DEFAULT '{}';
