-- Comparison of the search index with the stored records.

-- name: newest_step
SELECT max(number) FROM schema_migrations

-- name: count_unindexed_memories
SELECT count(*) FROM memories m
WHERE m.tenant_id = :tenant AND m.archived_at IS NULL AND m.held_at IS NULL AND m.text <> '' AND NOT EXISTS (
  SELECT 1 FROM memory_index i WHERE i.tenant_id = m.tenant_id AND i.agent_id = m.agent_id AND i.seq = m.seq
)

-- name: unindexed_memories
SELECT {memory} FROM memories m
WHERE m.tenant_id = :tenant AND m.archived_at IS NULL AND m.held_at IS NULL AND m.text <> '' AND NOT EXISTS (
  SELECT 1 FROM memory_index i WHERE i.tenant_id = m.tenant_id AND i.agent_id = m.agent_id AND i.seq = m.seq
)
ORDER BY m.agent_id, m.seq LIMIT :limit

-- name: count_surplus_memories
SELECT count(*) FROM memory_index i
JOIN memories m ON m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq
WHERE i.tenant_id = :tenant AND (m.archived_at IS NOT NULL OR m.held_at IS NOT NULL OR m.version <> i.version % 4294967296)

-- name: drop_surplus_memories
DELETE FROM memory_index
WHERE tenant_id = :tenant AND EXISTS (
  SELECT 1 FROM memories m
  WHERE m.tenant_id = memory_index.tenant_id AND m.agent_id = memory_index.agent_id AND m.seq = memory_index.seq
    AND (m.archived_at IS NOT NULL OR m.held_at IS NOT NULL OR m.version <> memory_index.version % 4294967296)
)

-- name: count_unindexed_chunks
SELECT count(*) FROM kb_chunks c
JOIN kb_documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE c.tenant_id = :tenant AND d.is_published AND NOT EXISTS (
  SELECT 1 FROM chunk_index i WHERE i.tenant_id = c.tenant_id AND i.seq = c.id
)

-- name: unindexed_chunks
SELECT c.id, c.text, d.category FROM kb_chunks c
JOIN kb_documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE c.tenant_id = :tenant AND d.is_published AND NOT EXISTS (
  SELECT 1 FROM chunk_index i WHERE i.tenant_id = c.tenant_id AND i.seq = c.id
)
ORDER BY c.id LIMIT :limit

-- name: count_surplus_chunks
SELECT count(*) FROM chunk_index i
JOIN kb_chunks c ON c.tenant_id = i.tenant_id AND c.id = i.seq
JOIN kb_documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE i.tenant_id = :tenant AND NOT d.is_published

-- name: drop_surplus_chunks
DELETE FROM chunk_index
WHERE tenant_id = :tenant AND EXISTS (
  SELECT 1 FROM kb_chunks c JOIN kb_documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
  WHERE c.tenant_id = chunk_index.tenant_id AND c.id = chunk_index.seq AND NOT d.is_published
)

-- Entries after a position: name, indexed words, and the text they come from.
-- name: memory_words_after
SELECT i.agent_id, i.seq, i.agent_id || '/m-' || i.seq, {stored_words}, m.text FROM memory_index i
JOIN memories m ON m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq AND m.version = i.version
WHERE i.tenant_id = :tenant AND (i.agent_id, i.seq) > (:agent, :seq)
ORDER BY i.agent_id, i.seq LIMIT :limit

-- name: chunk_words_after
SELECT '', i.seq, c.document_id || '/' || c.position, {stored_words}, c.text FROM chunk_index i
JOIN kb_chunks c ON c.tenant_id = i.tenant_id AND c.id = i.seq
WHERE i.tenant_id = :tenant AND i.seq > :seq ORDER BY i.seq LIMIT :limit

-- name: step_terms_after
SELECT '', i.seq, i.workflow_id || '/' || i.position, i.terms,
       s.tenant_id, s.workflow_id, w.name, s.position, s.step_name, s.agent_id, s.status, s.output, s.completed_at
FROM step_index i
JOIN workflow_steps s ON s.tenant_id = i.tenant_id AND s.workflow_id = i.workflow_id AND s.position = i.position
JOIN workflows w ON w.tenant_id = i.tenant_id AND w.id = i.workflow_id
WHERE i.tenant_id = :tenant AND i.seq > :seq ORDER BY i.seq LIMIT :limit

-- name: drop_step_words
DELETE FROM step_index WHERE tenant_id = :tenant AND seq = :seq
