-- name: count_memories_by_day
SELECT agent_id, kind, {created_day}, count(*) FROM memories
WHERE tenant_id = :tenant AND archived_at IS NULL
GROUP BY 1, 2, 3

-- name: count_events_by_day
SELECT agent_id, action, {event_day}, count(*) FROM audit_log
WHERE tenant_id = :tenant AND id > :after AND at >= :since
GROUP BY 1, 2, 3

-- name: count_prompts_by_day
SELECT agent_id, {event_day}, count(*), sum(tokens) FROM context_calls
WHERE tenant_id = :tenant AND at >= :since
GROUP BY 1, 2

-- name: count_for_review
SELECT agent_id, count(*) FROM memories
WHERE tenant_id = :tenant AND archived_at IS NULL AND flag IS NOT NULL
GROUP BY agent_id

-- name: count_open_proposals
SELECT agent_id, count(*) FROM proposals WHERE tenant_id = :tenant AND state = 'open' GROUP BY agent_id

-- name: list_expiring
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND archived_at IS NULL AND held_at IS NULL AND valid_to IS NULL AND expires_at > :now
ORDER BY expires_at, agent_id, seq LIMIT :limit

-- name: count_users
SELECT user_id, COUNT(DISTINCT agent_id), SUM(memories), SUM(sessions) FROM (
  SELECT agent_id, user_id, COUNT(*) AS memories, 0 AS sessions FROM memories
  WHERE tenant_id = :tenant AND user_id > :after GROUP BY agent_id, user_id
  UNION ALL
  SELECT agent_id, user_id, 0, COUNT(*) FROM chat_sessions
  WHERE tenant_id = :tenant AND user_id > :after GROUP BY agent_id, user_id
) AS counted
WHERE :is_any OR agent_id {in_names}
GROUP BY user_id ORDER BY user_id LIMIT :limit
