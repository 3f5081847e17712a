-- name: unembedded_memories
SELECT i.agent_id, i.seq, i.version, m.text FROM memory_index i
JOIN memories m ON m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq
WHERE i.tenant_id = :tenant AND i.embedder_id IS NULL AND (i.agent_id, i.seq) > (:agent, :seq)
ORDER BY i.agent_id, i.seq LIMIT :limit

-- name: unembedded_chunks
SELECT i.seq, i.version, c.text FROM chunk_index i
JOIN kb_chunks c ON c.tenant_id = i.tenant_id AND c.id = i.seq
WHERE i.tenant_id = :tenant AND i.embedder_id IS NULL AND i.seq > :seq
ORDER BY i.seq LIMIT :limit

-- name: count_unembedded_memories
SELECT count(*) FROM memory_index WHERE tenant_id = :tenant AND embedder_id IS NULL

-- name: count_unembedded_chunks
SELECT count(*) FROM chunk_index WHERE tenant_id = :tenant AND embedder_id IS NULL

-- name: touch_all_indexes
UPDATE agents SET revision = revision + 1, rewrites = rewrites + 1 WHERE tenant_id = :tenant
