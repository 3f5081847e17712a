-- Events of the audit log that are committed and not yet part of its chain. The row of a lane counts its events, so that
-- a missing one shows; writers of different lanes do not wait for each other.
CREATE TABLE audit_lanes (
  tenant_id TEXT NOT NULL,
  lane INTEGER NOT NULL,
  last_place BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, lane)
);

CREATE TABLE audit_waiting (
  tenant_id TEXT NOT NULL,
  lane INTEGER NOT NULL,
  place BIGINT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  action TEXT NOT NULL,
  agent_id TEXT,
  message TEXT NOT NULL,
  meta TEXT NOT NULL,
  hash TEXT NOT NULL,
  is_refused BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (tenant_id, lane, place)
);

-- The last place of each lane that the chain holds, and the number of events that were missing: {"lane": [place, missing]}.
ALTER TABLE shelves ADD COLUMN lanes TEXT NOT NULL DEFAULT '{}';

ALTER TABLE audit_lanes ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_lanes FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON audit_lanes
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));

ALTER TABLE audit_waiting ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_waiting FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON audit_waiting
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
