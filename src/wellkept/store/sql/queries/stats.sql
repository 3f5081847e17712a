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

-- name: count_recalls
INSERT INTO recalls_by_day (tenant_id, agent_id, day, recalls)
SELECT tenant_id, id, :day, :count FROM agents WHERE tenant_id = :tenant AND id = :agent
ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET recalls = recalls_by_day.recalls + excluded.recalls

-- name: count_recalls_by_day
SELECT agent_id, day, recalls FROM recalls_by_day WHERE tenant_id = :tenant AND day >= :since

-- name: count_users_by_day
SELECT agent_id, user_id, day, written FROM (
  SELECT agent_id, user_id, day, written,
    dense_rank() OVER (PARTITION BY agent_id ORDER BY total DESC, user_id) AS place
  FROM (
    SELECT agent_id, user_id, {created_day} AS day, count(*) AS written,
      sum(count(*)) OVER (PARTITION BY agent_id, user_id) AS total
    FROM memories
    WHERE tenant_id = :tenant AND archived_at IS NULL AND user_id <> '' AND created_at >= :since
    GROUP BY 1, 2, 3
  ) AS written_by_day
) AS ranked
WHERE place <= :limit

-- name: count_index_bytes
SELECT coalesce(sum({entry_bytes}), 0) FROM memory_index WHERE tenant_id = :tenant

-- name: count_for_review
SELECT agent_id, count(*) FROM memories
WHERE tenant_id = :tenant AND archived_at IS NULL AND flag IS NOT NULL
GROUP BY agent_id

-- name: count_proposed_changes
SELECT agent_id, count(*) FROM changes WHERE tenant_id = :tenant AND state = 'proposed' GROUP BY agent_id

-- name: list_expiring
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND archived_at IS NULL AND held_at IS NULL AND valid_to IS NULL AND expires_at > :now
ORDER BY expires_at, agent_id, seq LIMIT :limit

-- name: count_users
SELECT user_id, COUNT(DISTINCT agent_id), SUM(memories), SUM(sessions), MAX(last_at) FROM (
  SELECT agent_id, user_id, COUNT(*) AS memories, 0 AS sessions, MAX(created_at) AS last_at FROM memories
  WHERE tenant_id = :tenant AND user_id > :after GROUP BY agent_id, user_id
  UNION ALL
  SELECT agent_id, user_id, 0, COUNT(*), MAX(updated_at) FROM chat_sessions
  WHERE tenant_id = :tenant AND user_id > :after GROUP BY agent_id, user_id
) AS counted
WHERE :is_any OR agent_id {in_names}
GROUP BY user_id ORDER BY user_id LIMIT :limit
