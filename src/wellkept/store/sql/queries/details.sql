-- name: add_detail
INSERT INTO details ({detail}, folded) VALUES ({:detail}, :folded)

-- name: find_detail
SELECT {detail} FROM details WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND key = :key

-- Details that were stored for a session before it began.
-- name: claim_details
UPDATE details SET user_id = :user_id WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND session_id = :id AND user_id = ''

-- name: set_detail_active
UPDATE details SET is_active = :is_active WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND key = :key

-- name: delete_detail
DELETE FROM details WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND key = :key

-- name: add_content
INSERT INTO detail_contents (tenant_id, content_hash, size, chars, line_index, stored_at)
VALUES (:tenant, :content_hash, :size, :chars, :line_index, :now)
ON CONFLICT (tenant_id, content_hash) DO NOTHING

-- Lock the row of a content until commit, so that no sweep removes it meanwhile.
-- name: hold_content
UPDATE detail_contents SET stored_at = CASE WHEN stored_at < :now THEN :now ELSE stored_at END
WHERE tenant_id = :tenant AND content_hash = :content_hash

-- name: add_chunk_frame
INSERT INTO detail_chunks (tenant_id, content_hash, position, frame)
VALUES (:tenant, :content_hash, :position, :frame)

-- name: find_content
SELECT size, chars, line_index FROM detail_contents WHERE tenant_id = :tenant AND content_hash = :content_hash

-- name: find_frame
SELECT frame FROM detail_chunks
WHERE tenant_id = :tenant AND content_hash = :content_hash AND position = :position

-- name: measure_frames
SELECT count(*), coalesce(sum(length(frame)), 0) FROM detail_chunks
WHERE tenant_id = :tenant AND content_hash = :content_hash

-- name: list_orphans
SELECT content_hash FROM detail_contents c
WHERE c.tenant_id = :tenant AND c.stored_at < :stored_before
  AND NOT EXISTS (SELECT 1 FROM details d WHERE d.tenant_id = c.tenant_id AND d.content_hash = c.content_hash)
LIMIT :limit

-- name: count_orphans
SELECT count(*) FROM detail_contents c
WHERE c.tenant_id = :tenant AND c.stored_at < :stored_before
  AND NOT EXISTS (SELECT 1 FROM details d WHERE d.tenant_id = c.tenant_id AND d.content_hash = c.content_hash)

-- name: count_content_rows
SELECT count(*) FROM details WHERE tenant_id = :tenant AND content_hash = :content_hash

-- name: delete_content
DELETE FROM detail_contents WHERE tenant_id = :tenant AND content_hash = :content_hash
