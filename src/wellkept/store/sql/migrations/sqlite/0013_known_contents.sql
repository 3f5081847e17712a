-- Contents in files beside the database are listed here too, so that only those it once knew are ever swept.
INSERT INTO detail_contents (tenant_id, content_hash, size, chars, line_index, stored_at)
SELECT tenant_id, content_hash, max(size), max(chars), x'', max(created_at) FROM details
GROUP BY tenant_id, content_hash
ON CONFLICT (tenant_id, content_hash) DO NOTHING;
