-- Recalls of an agent on each day, for the overview.
CREATE TABLE recalls_by_day (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  day TEXT NOT NULL,
  recalls INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, day),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;
