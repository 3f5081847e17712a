-- fragment: steps
SELECT s.tenant_id, s.workflow_id, w.name, s.position, s.step_name, s.agent_id, s.status, s.output, s.completed_at
FROM workflow_steps s JOIN workflows w ON w.tenant_id = s.tenant_id AND w.id = s.workflow_id

-- name: add_workflow
INSERT INTO workflows ({workflow}) VALUES ({:workflow}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: find_workflow
SELECT {workflow} FROM workflows WHERE tenant_id = :tenant AND id = :id

-- name: find_workflow_named
SELECT {workflow} FROM workflows WHERE tenant_id = :tenant AND name = :name ORDER BY created_at DESC, id DESC LIMIT 1

-- name: list_workflows
SELECT {workflow} FROM workflows WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: last_step
SELECT coalesce(max(position), 0) FROM workflow_steps WHERE tenant_id = :tenant AND workflow_id = :workflow_id

-- name: add_step
INSERT INTO workflow_steps
  (tenant_id, workflow_id, position, step_name, agent_id, status, output, folded, completed_at)
VALUES (:tenant_id, :workflow_id, :position, :step_name, :agent_id, :status, :output, :folded, :completed_at)

-- name: index_step
INSERT INTO step_index (tenant_id, seq, workflow_id, position, terms)
VALUES (:tenant_id, :seq, :workflow_id, :position, :terms)

-- name: list_steps
{steps}
WHERE s.tenant_id = :tenant AND s.workflow_id = :workflow_id AND s.position > :after
ORDER BY s.position LIMIT :limit

-- name: unindexed_steps
{steps}
WHERE s.tenant_id = :tenant AND NOT EXISTS (
  SELECT 1 FROM step_index i
  WHERE i.tenant_id = s.tenant_id AND i.workflow_id = s.workflow_id AND i.position = s.position
)
ORDER BY s.completed_at, s.workflow_id, s.position LIMIT :limit

-- name: count_unindexed_steps
SELECT count(*) FROM workflow_steps s
WHERE s.tenant_id = :tenant AND NOT EXISTS (
  SELECT 1 FROM step_index i
  WHERE i.tenant_id = s.tenant_id AND i.workflow_id = s.workflow_id AND i.position = s.position
)

-- name: steps_head
SELECT last_id FROM shelves WHERE tenant_id = :tenant AND shelf = 'workflow'

-- name: step_words_after
SELECT seq, terms FROM step_index WHERE tenant_id = :tenant AND seq > :seq ORDER BY seq LIMIT :limit
