-- name: list_details
SELECT {detail} FROM details
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND (created_at, key) < (:before_at, :before_key)
  AND (:session IS NULL OR session_id = :session) AND (:is_active IS NULL OR is_active = :is_active)
ORDER BY created_at DESC, key DESC LIMIT :limit

-- name: search_details
SELECT {detail} FROM (
  SELECT d.*, (SELECT count(*) FROM json_each(:words) w WHERE instr(d.folded, w.value) > 0) AS found
  FROM details d
  WHERE d.tenant_id = :tenant AND d.agent_id = :agent{seen} AND d.is_active = 1
    AND (:session IS NULL OR d.session_id = :session)
)
WHERE found > 0 ORDER BY found DESC, created_at DESC, key DESC LIMIT :limit OFFSET :offset

-- name: list_contents
SELECT content_hash FROM detail_contents WHERE tenant_id = :tenant

-- Texts that version 0.2 kept in files and that are not wholly in rows yet.
-- name: list_contents_in_files
SELECT content_hash FROM detail_contents WHERE tenant_id = :tenant AND line_index = x'' AND chars > 0

-- name: set_line_index
UPDATE detail_contents SET line_index = :line_index WHERE tenant_id = :tenant AND content_hash = :content_hash

-- SQLite has one writer at a time, so no lock is needed.
-- name: lock_content
SELECT 1 FROM detail_contents WHERE tenant_id = :tenant AND content_hash = :content_hash
