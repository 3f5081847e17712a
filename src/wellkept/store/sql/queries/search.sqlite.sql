-- Statements for SQLite: lists of numbers are passed as JSON, and index entries are bytes that are loaded into memory.

-- The single writer has locked the whole database, and thereby every agent.
-- name: hold_agent
SELECT last_seq, life, rewrites FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: hold_audit_head
SELECT last_id, last_hash, lanes FROM shelves WHERE tenant_id = :tenant AND shelf = 'audit'

-- name: find_memories
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq IN (SELECT value FROM json_each(:seqs))

-- name: find_chunks
SELECT {chunk} FROM kb_chunks WHERE tenant_id = :tenant AND id IN (SELECT value FROM json_each(:seqs))

-- name: find_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id IN (SELECT value FROM json_each(:ids))

-- name: find_steps
SELECT i.seq, s.tenant_id, s.workflow_id, w.name, s.position, s.step_name, s.agent_id, s.status, s.output, s.completed_at
FROM step_index i
JOIN workflow_steps s ON s.tenant_id = i.tenant_id AND s.workflow_id = i.workflow_id AND s.position = i.position
JOIN workflows w ON w.tenant_id = i.tenant_id AND w.id = i.workflow_id
WHERE i.tenant_id = :tenant AND i.seq IN (SELECT value FROM json_each(:seqs))

-- name: find_events
SELECT {event} FROM audit_log WHERE tenant_id = :tenant AND id IN (SELECT value FROM json_each(:ids))

-- name: index_memory
INSERT INTO memory_index
  (tenant_id, agent_id, seq, version, kind, expires_at, terms, embedder_id, vector, session_id, role, since)
VALUES (:tenant_id, :agent_id, :seq, :version, :kind, :ends_at, :terms, :embedder_id, :vector, :session_id, :role,
        :since)

-- name: delete_chunks
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND id IN (SELECT value FROM json_each(:seqs))

-- name: sort_chunks
UPDATE chunk_index SET category = :category, version = :version WHERE tenant_id = :tenant AND seq IN (SELECT value FROM json_each(:seqs))

-- name: hide_chunks
DELETE FROM chunk_index WHERE tenant_id = :tenant AND seq IN (SELECT value FROM json_each(:seqs))

-- name: index_chunk
INSERT INTO chunk_index (tenant_id, seq, version, category, terms, embedder_id, vector)
VALUES (:tenant_id, :seq, :version, :category, :terms, :embedder_id, :vector)

-- users: of all users
-- name: unembedded_of_agent
SELECT * FROM (
  SELECT i.agent_id, i.seq, i.version, m.text FROM memory_index i INDEXED BY memory_index_waiting
  JOIN memories m ON m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq
  WHERE i.tenant_id = :tenant AND i.agent_id = :agent AND i.embedder_id IS NULL ORDER BY i.seq DESC LIMIT :limit
) AS newest
UNION ALL
SELECT * FROM (
  SELECT '' AS agent_id, i.seq, i.version, c.text FROM chunk_index i
  JOIN kb_chunks c ON c.tenant_id = i.tenant_id AND c.id = i.seq
  WHERE i.tenant_id = :tenant AND i.embedder_id IS NULL ORDER BY i.seq LIMIT :limit
) AS passages
LIMIT :limit

-- name: set_memory_vector
UPDATE memory_index SET embedder_id = :embedder_id, vector = :vector
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq = :seq AND version = :version

-- name: set_chunk_vector
UPDATE chunk_index SET embedder_id = :embedder_id, vector = :vector
WHERE tenant_id = :tenant AND seq = :seq AND version = :version

-- name: drop_memory_vectors
UPDATE memory_index SET embedder_id = NULL, vector = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- name: drop_chunk_vectors
UPDATE chunk_index SET embedder_id = NULL, vector = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- name: memory_index_after
SELECT seq, version, kind, expires_at, terms, embedder_id, vector, session_id, role, since FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent AND seq > :seq{user| AND seq IN (
    SELECT m.seq FROM memories m
    WHERE m.tenant_id = :tenant AND m.agent_id = :agent AND m.user_id = :user AND m.seq > :seq)}
ORDER BY seq LIMIT :limit

-- name: memory_index_rows
SELECT seq, version, kind, expires_at, terms, embedder_id, vector, session_id, role, since FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq IN (SELECT value FROM json_each(:seqs))

-- name: memory_fields
SELECT seq, {entry_version}, {where} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq IN (SELECT value FROM json_each(:seqs))

-- name: memory_index_versions
SELECT seq, version, coalesce(embedder_id, 0) FROM memory_index WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries}

-- name: chunk_index_after
SELECT seq, version, category, NULL, terms, embedder_id, vector, NULL, 'user', 0 FROM chunk_index
WHERE tenant_id = :tenant AND seq > :seq
ORDER BY seq LIMIT :limit

-- name: chunk_index_rows
SELECT seq, version, category, NULL, terms, embedder_id, vector, NULL, 'user', 0 FROM chunk_index
WHERE tenant_id = :tenant AND seq IN (SELECT value FROM json_each(:seqs))

-- name: chunk_index_versions
SELECT seq, version, coalesce(embedder_id, 0) FROM chunk_index WHERE tenant_id = :tenant

-- name: archive_memories
UPDATE memories SET archived_at = :now
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND archived_at IS NULL
  AND seq IN (SELECT value FROM json_each(:seqs))

-- name: remove_all_from_index
DELETE FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq IN (SELECT value FROM json_each(:seqs))

-- Episodes with an end, and items whose life a reading extends.
-- name: ending_memories
SELECT seq, category, created_at, last_retrieved_at, expires_at, ttl_seconds FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND (kind = 'episode' OR ttl_seconds IS NOT NULL)
  AND archived_at IS NULL AND valid_to IS NULL AND (expires_at > :now OR ttl_seconds IS NOT NULL) AND seq IN (SELECT value FROM json_each(:seqs))

-- name: mark_retrieved
UPDATE memories SET last_retrieved_at = :at
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND (last_retrieved_at IS NULL OR last_retrieved_at < :at)
  AND seq IN (SELECT value FROM json_each(:seqs))
