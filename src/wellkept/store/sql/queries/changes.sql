-- name: last_change
-- users: changes are numbered per agent
SELECT COALESCE(MAX(seq), 0) FROM changes WHERE tenant_id = :tenant AND agent_id = :agent

-- name: add_change
INSERT INTO changes ({change}) VALUES ({:change})

-- name: find_change
SELECT {change} FROM changes WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = :seq

-- name: list_changes
SELECT {change} FROM changes
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq < :before AND :state IN ('', state)
ORDER BY seq DESC LIMIT :limit

-- name: decide_change
UPDATE changes
SET state = :state, text = :text, memories = :memories, actor = :actor, decided_at = :decided_at
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND state = :was

-- name: delete_old_changes
DELETE FROM changes
WHERE tenant_id = :tenant AND agent_id = :agent{owned}
  AND ((state = 'proposed' AND created_at < :proposed_before)
       OR (state <> 'proposed' AND COALESCE(decided_at, created_at) < :before))

-- name: delete_change
DELETE FROM changes WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq = :seq
