-- name: add_session
INSERT INTO chat_sessions ({session}) VALUES ({:session}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: find_session
SELECT {session} FROM chat_sessions WHERE tenant_id = :tenant AND id = :id AND agent_id = :agent{seen}

-- name: find_tenant_session
SELECT {session} FROM chat_sessions WHERE tenant_id = :tenant AND id = :id

-- The first page has no cursor; an OR for that case would prevent the use of the index.
-- name: first_sessions
SELECT {session} FROM chat_sessions WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND {where}
ORDER BY updated_at DESC, id DESC LIMIT :limit

-- name: sessions_before
SELECT {session} FROM chat_sessions
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND updated_at <= :updated_at
  AND (updated_at < :updated_at OR id < :id) AND {where}
ORDER BY updated_at DESC, id DESC LIMIT :limit

-- name: first_tenant_sessions
SELECT {session} FROM chat_sessions WHERE tenant_id = :tenant AND {where}
ORDER BY updated_at DESC, id DESC LIMIT :limit

-- name: tenant_sessions_before
SELECT {session} FROM chat_sessions
WHERE tenant_id = :tenant AND updated_at <= :updated_at AND (updated_at < :updated_at OR id < :id) AND {where}
ORDER BY updated_at DESC, id DESC LIMIT :limit

-- name: delete_session
DELETE FROM chat_sessions WHERE tenant_id = :tenant AND id = :id AND agent_id = :agent{owned}

-- Adding messages locks the session's row until commit, so positions have no gaps or duplicates.
-- name: take_positions
UPDATE chat_sessions
SET message_count = message_count + :count,
    updated_at = CASE WHEN updated_at < :now THEN :now ELSE updated_at END
WHERE tenant_id = :tenant AND id = :id AND agent_id = :agent{owned}
RETURNING message_count

-- name: add_message
INSERT INTO chat_messages ({message}) VALUES ({:message})

-- name: messages_after
SELECT {message} FROM chat_messages
WHERE tenant_id = :tenant AND session_id = :id AND position > :after
ORDER BY position LIMIT :limit

-- name: update_summary
UPDATE chat_sessions SET summary = :summary, summarized_count = :covers
WHERE tenant_id = :tenant AND id = :id AND agent_id = :agent{seen}
  AND summarized_count = :instead_of AND :covers >= summarized_count AND :covers <= message_count
