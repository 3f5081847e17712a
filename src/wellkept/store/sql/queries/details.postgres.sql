-- name: list_details
SELECT {detail} FROM details
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND (created_at, key) < (:before_at::timestamptz, :before_key::text)
  AND (:session::text IS NULL OR session_id = :session::text)
  AND (:is_active::boolean IS NULL OR is_active = :is_active::boolean)
ORDER BY created_at DESC, key DESC LIMIT :limit

-- name: search_details
SELECT {detail} FROM (
  SELECT d.*, (SELECT count(*) FROM unnest(:words::text[]) AS word WHERE strpos(d.folded, word) > 0) AS found
  FROM details d
  WHERE d.tenant_id = :tenant AND d.agent_id = :agent{seen} AND d.is_active
    AND (:session::text IS NULL OR d.session_id = :session::text)
) AS scored
WHERE found > 0 ORDER BY found DESC, created_at DESC, key DESC LIMIT :limit OFFSET :offset

-- Lock before checking for references: a detail added meanwhile is committed by then and visible to the next statement.
-- name: lock_content
SELECT 1 FROM detail_contents WHERE tenant_id = :tenant AND content_hash = :content_hash FOR UPDATE
