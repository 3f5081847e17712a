-- name: add_context_call
INSERT INTO context_calls ({context_call}) VALUES ({:context_call}) ON CONFLICT (tenant_id, agent_id, id) DO NOTHING

-- name: find_context_call
SELECT {context_call} FROM context_calls WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND id = :id

-- name: list_context_calls
SELECT {context_call} FROM context_calls
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND id < :before AND :session IN ('', session_id)
ORDER BY id DESC LIMIT :limit

-- name: oldest_kept_context_call
SELECT id FROM context_calls WHERE tenant_id = :tenant AND agent_id = :agent ORDER BY id DESC LIMIT 1 OFFSET :keep

-- name: prune_context_calls
DELETE FROM context_calls WHERE tenant_id = :tenant AND agent_id = :agent AND id <= :id

-- name: add_shown
INSERT INTO shown_texts (tenant_id, agent_id, hash, shown_at) VALUES (:tenant, :agent, :hash, :at)
ON CONFLICT (tenant_id, agent_id, hash) DO UPDATE SET shown_at = excluded.shown_at

-- name: find_shown
SELECT hash FROM shown_texts
WHERE tenant_id = :tenant AND agent_id = :agent AND hash {in_names} AND shown_at > :since

-- name: oldest_kept_shown
SELECT shown_at FROM shown_texts WHERE tenant_id = :tenant AND agent_id = :agent
ORDER BY shown_at DESC LIMIT 1 OFFSET :keep

-- name: prune_shown
DELETE FROM shown_texts WHERE tenant_id = :tenant AND agent_id = :agent AND shown_at <= :at

-- name: forget_shown
DELETE FROM shown_texts WHERE tenant_id = :tenant

-- name: list_tool_results
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND session_id = :session AND role = 'tool_result'
  AND held_at IS NULL AND {unended}
ORDER BY seq DESC LIMIT :limit
