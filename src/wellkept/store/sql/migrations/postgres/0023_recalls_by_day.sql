-- Recalls of an agent on each day, for the overview.
CREATE TABLE recalls_by_day (
  tenant_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  day TEXT NOT NULL,
  recalls BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, day),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE recalls_by_day ENABLE ROW LEVEL SECURITY;
ALTER TABLE recalls_by_day FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON recalls_by_day
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
