-- Workflow steps get numbers of their tenant, as chunks and events have them: one more shelf.
ALTER TABLE shelves DROP CONSTRAINT shelves_shelf_check;

ALTER TABLE shelves ADD CONSTRAINT shelves_shelf_check CHECK (shelf IN ('knowledge', 'audit', 'workflow'));

-- The words of a step, in the order in which steps were recorded: read into memory, not searched here.
CREATE TABLE step_index (
  tenant_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  workflow_id TEXT NOT NULL,
  position BIGINT NOT NULL,
  terms BYTEA NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, workflow_id, position)
    REFERENCES workflow_steps (tenant_id, workflow_id, position) ON DELETE CASCADE
);

CREATE INDEX step_index_by_step ON step_index (tenant_id, workflow_id, position);

CREATE INDEX workflows_by_name ON workflows (tenant_id, name, created_at);

ALTER TABLE step_index ENABLE ROW LEVEL SECURITY;
ALTER TABLE step_index FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON step_index
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
