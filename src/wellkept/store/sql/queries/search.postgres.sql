-- Statements for PostgreSQL: arrays, index entries as numbers and texts, and search of a large shelf in the database.

-- Block other writers of the agent until the end of the transaction.
-- name: hold_agent
SELECT last_seq, life, rewrites FROM agents WHERE tenant_id = :tenant AND id = :agent FOR NO KEY UPDATE

-- name: find_memories
SELECT {memory} FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = ANY(:seqs)

-- name: find_chunks
SELECT {chunk} FROM kb_chunks WHERE tenant_id = :tenant AND id = ANY(:seqs)

-- name: find_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id = ANY(:ids)

-- Compare bytewise, as SQLite does.
-- name: list_workflows
SELECT {workflow} FROM workflows
WHERE tenant_id = :tenant AND id COLLATE "C" > :after ORDER BY id COLLATE "C" LIMIT :limit

-- name: find_steps
SELECT i.seq, s.tenant_id, s.workflow_id, w.name, s.position, s.step_name, s.agent_id, s.status, s.output, s.completed_at
FROM step_index i
JOIN workflow_steps s ON s.tenant_id = i.tenant_id AND s.workflow_id = i.workflow_id AND s.position = i.position
JOIN workflows w ON w.tenant_id = i.tenant_id AND w.id = i.workflow_id
WHERE i.tenant_id = :tenant AND i.seq = ANY(:seqs)

-- name: find_events
SELECT {event} FROM audit_log WHERE tenant_id = :tenant AND id = ANY(:ids)

-- name: index_memory
INSERT INTO memory_index
  (tenant_id, agent_id, seq, version, kind, expires_at, words, length, embedder_id, embedding, session_id, role, since)
VALUES (:tenant_id, :agent_id, :seq, :version, :kind, :ends_at, :terms::tsvector, :length, :embedder_id,
        :vector::halfvec, :session_id, :role, :since)

-- name: delete_chunks
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND id = ANY(:seqs)

-- name: sort_chunks
UPDATE chunk_index SET category = :category, version = :version WHERE tenant_id = :tenant AND seq = ANY(:seqs)

-- name: hide_chunks
DELETE FROM chunk_index WHERE tenant_id = :tenant AND seq = ANY(:seqs)

-- name: index_chunk
INSERT INTO chunk_index (tenant_id, seq, version, category, words, length, embedder_id, embedding)
VALUES (:tenant_id, :seq, :version, :category, :terms::tsvector, :length, :embedder_id, :vector::halfvec)

-- users: of all users
-- name: unembedded_of_agent
SELECT * FROM (
  SELECT i.agent_id, i.seq, i.version, m.text FROM memory_index i
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
UPDATE memory_index SET embedder_id = :embedder_id, embedding = :vector::halfvec
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq = :seq AND version = :version

-- name: set_chunk_vector
UPDATE chunk_index SET embedder_id = :embedder_id, embedding = :vector::halfvec
WHERE tenant_id = :tenant AND seq = :seq AND version = :version

-- name: drop_memory_vectors
UPDATE memory_index SET embedder_id = NULL, embedding = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- name: drop_chunk_vectors
UPDATE chunk_index SET embedder_id = NULL, embedding = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- name: memory_index_after
SELECT {memory_entry} FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent AND seq > :seq{user| AND seq IN (
    SELECT m.seq FROM memories m
    WHERE m.tenant_id = :tenant AND m.agent_id = :agent AND m.user_id = :user AND m.seq > :seq)}
ORDER BY seq LIMIT :limit

-- name: memory_index_rows
SELECT {memory_entry} FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq = ANY(:seqs)

-- name: memory_fields
SELECT seq, {entry_version}, {where} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq = ANY(:seqs)

-- Columns of an entry for the index in memory.
-- fragment: memory_entry
seq, version, kind, extract(epoch FROM expires_at)::float8, words::text, embedder_id, halfvec_send(embedding), session_id,
role, since

-- Aggregate into one value of big-endian numbers, unordered: three times faster than ten thousand rows.
-- name: memory_index_versions
SELECT string_agg(int8send(seq) || int8send(version) || int8send(coalesce(embedder_id, 0)), '') FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries}

-- Weigh all entries of an owner: numbers of fixed length, unordered, as `store.postgres.index` reads them. The place
-- of a filter holds the expression for the bits of traits and words.
-- name: weigh_entries
SELECT string_agg(
  int8send(seq) || int8send(since)
  || int8send(CASE WHEN session_id IS NULL THEN 0 ELSE greatest(hashtextextended(session_id, 0) & :positive::bigint, 1) END)
  || int4send(length)
  || int2send((CASE WHEN kind = 'episode' THEN coalesce(array_position(:roles::text[], role), 0) ELSE 0 END)::int2)
  || float4send(CASE WHEN embedder_id = :embedder_id THEN -(embedding::vector <#> :vector::vector) ELSE 'NaN' END::float4)
  || {where}, '')
FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries}
  AND (expires_at IS NULL OR extract(epoch FROM expires_at)::float8 > :now::float8)
  AND (:until::bigint IS NULL OR since <= :until::bigint) AND kind = ANY(:kinds)

-- name: count_repeated
SELECT i.seq, w.lexeme, cardinality(w.positions) FROM memory_index i CROSS JOIN LATERAL unnest(i.words) w
WHERE i.tenant_id = :tenant AND i.agent_id = :agent{owned_entries} AND i.seq = ANY(:seqs)
  AND w.lexeme = ANY(:terms) AND cardinality(w.positions) > 1

-- name: entries_where
SELECT string_agg(int8send(seq), '') FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND archived_at IS NULL AND {where}

-- name: chunk_index_after
SELECT {chunk_entry} FROM chunk_index
WHERE tenant_id = :tenant AND seq > :seq
ORDER BY seq LIMIT :limit

-- name: chunk_index_rows
SELECT {chunk_entry} FROM chunk_index
WHERE tenant_id = :tenant AND seq = ANY(:seqs)

-- fragment: chunk_entry
seq, version, category, NULL, words::text, embedder_id, halfvec_send(embedding), NULL, 'user', 0

-- name: chunk_index_versions
SELECT string_agg(int8send(seq) || int8send(version) || int8send(coalesce(embedder_id, 0)), '') FROM chunk_index
WHERE tenant_id = :tenant

-- BM25 over `term`, the words of the query; `size`, the number of rows and their average length; and `candidate`, each
-- row that contains a term, once per term.
-- name: search_chunks
WITH term AS (
  SELECT lexeme, quote_literal(lexeme)::tsquery AS query FROM unnest(:terms::text[]) AS lexeme
), size AS (
  SELECT count(*) AS total, avg(length) AS length FROM chunk_index
  WHERE tenant_id = :tenant AND (:any_category OR category = ANY(:categories))
), candidate AS (
  SELECT i.seq, i.length, t.lexeme,
         (SELECT cardinality(w.positions) FROM unnest(i.words) AS w WHERE w.lexeme = t.lexeme)::float8 AS frequency
  FROM term t JOIN chunk_index i ON i.words @@ t.query
  WHERE i.tenant_id = :tenant AND (:any_category OR i.category = ANY(:categories))
), rarity AS (
  SELECT lexeme, ln(1 + (size.total - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM candidate, size GROUP BY lexeme, size.total
)
SELECT c.seq,
       sum(r.weight * c.frequency * (:k1 + 1) / (c.frequency + :k1 * (1 - :b + :b * c.length / size.length)))::float8
         AS score
FROM candidate c JOIN rarity r ON r.lexeme = c.lexeme CROSS JOIN size
WHERE {where}
GROUP BY c.seq ORDER BY score DESC, c.seq DESC LIMIT :limit

-- name: chunk_sizes
SELECT count(*), avg(length)::float8 FROM chunk_index
WHERE tenant_id = :tenant AND (:any_category OR category = ANY(:categories))

-- name: count_holding
SELECT lexeme, (SELECT count(*) FROM chunk_index i WHERE i.tenant_id = :tenant AND i.words @@ quote_literal(lexeme)::tsquery
                AND (:any_category OR i.category = ANY(:categories)))
FROM unnest(:terms::text[]) AS lexeme

-- name: chunks_ever
SELECT last_id FROM shelves WHERE tenant_id = :tenant AND shelf = 'knowledge'

-- name: nearest_chunks
WITH own AS MATERIALIZED (
  SELECT seq, embedding FROM chunk_index
  WHERE tenant_id = :tenant AND embedder_id = :embedder_id AND (:any_category OR category = ANY(:categories)) AND {where}
)
SELECT seq, 1 - (embedding <=> :vector::halfvec) AS score FROM own
ORDER BY embedding <=> :vector::halfvec, seq DESC LIMIT :limit

-- name: find_nearest_index
SELECT to_regclass('chunk_index_nearest_{embedder_id}') IS NOT NULL, pg_has_role(relowner, 'USAGE')
FROM pg_class WHERE oid = to_regclass('chunk_index')

-- name: make_nearest_index
CREATE INDEX IF NOT EXISTS chunk_index_nearest_{embedder_id} ON chunk_index
USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops) WHERE embedder_id = {embedder_id}

-- name: scan_until_enough
SET LOCAL hnsw.iterative_scan = 'strict_order'

-- name: nearest_chunks_by_index
SELECT seq, 1 - (embedding::halfvec({dimensions}) <=> :vector::halfvec({dimensions})) AS score FROM chunk_index
WHERE tenant_id = :tenant AND embedder_id = {embedder_id} AND (:any_category OR category = ANY(:categories)) AND {where}
ORDER BY embedding::halfvec({dimensions}) <=> :vector::halfvec({dimensions}) LIMIT :limit

-- name: archive_memories
UPDATE memories SET archived_at = :now
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND archived_at IS NULL AND seq = ANY(:seqs)

-- name: remove_all_from_index
DELETE FROM memory_index WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND seq = ANY(:seqs)

-- Episodes with an end, and items whose life a reading extends.
-- name: ending_memories
SELECT seq, category, created_at, last_retrieved_at, expires_at, ttl_seconds FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND (kind = 'episode' OR ttl_seconds IS NOT NULL)
  AND archived_at IS NULL AND valid_to IS NULL AND (expires_at > :now OR ttl_seconds IS NOT NULL) AND seq = ANY(:seqs)

-- Lock rows in order, so that servers that mark the same memories cannot deadlock.
-- name: mark_retrieved
UPDATE memories SET last_retrieved_at = :at
WHERE tenant_id = :tenant AND agent_id = :agent AND seq IN (
  SELECT seq FROM memories
  WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = ANY(:seqs)
    AND (last_retrieved_at IS NULL OR last_retrieved_at < :at)
  ORDER BY seq FOR UPDATE
)
