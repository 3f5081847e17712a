-- PostgreSQL's own: arrays, full-text and vector search inside the database.

-- As long as the transaction lasts, nobody else writes to the agent.
-- name: hold_agent
SELECT 1 FROM agents WHERE tenant_id = :tenant AND id = :agent FOR NO KEY UPDATE

-- name: find_memories
SELECT {memory} FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND seq = ANY(:seqs)

-- name: find_chunks
SELECT {chunk} FROM kb_chunks WHERE tenant_id = :tenant AND id = ANY(:seqs)

-- name: find_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id = ANY(:ids)

-- Byte by byte, as in SQLite.
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
VALUES (:tenant_id, :agent_id, :seq, :version, :kind, :ends_at, :words::tsvector, :length, :embedder_id,
        :vector::halfvec, :session_id, :role, :since)

-- name: delete_chunks
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND id = ANY(:seqs)

-- name: sort_chunks
UPDATE chunk_index SET category = :category, version = :version WHERE tenant_id = :tenant AND seq = ANY(:seqs)

-- name: hide_chunks
DELETE FROM chunk_index WHERE tenant_id = :tenant AND seq = ANY(:seqs)

-- name: index_chunk
INSERT INTO chunk_index (tenant_id, seq, version, category, words, length, embedder_id, embedding)
VALUES (:tenant_id, :seq, :version, :category, :words::tsvector, :length, :embedder_id, :vector::halfvec)

-- name: set_memory_vector
UPDATE memory_index SET embedder_id = :embedder_id, embedding = :vector::halfvec
WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq AND version = :version

-- name: set_chunk_vector
UPDATE chunk_index SET embedder_id = :embedder_id, embedding = :vector::halfvec
WHERE tenant_id = :tenant AND seq = :seq AND version = :version

-- name: drop_memory_vectors
UPDATE memory_index SET embedder_id = NULL, embedding = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- name: drop_chunk_vectors
UPDATE chunk_index SET embedder_id = NULL, embedding = NULL
WHERE tenant_id = :tenant AND embedder_id <> :embedder_id

-- The parts of BM25 that are the same for memories and chunks: the query's terms; one term in one row (t in i); and the
-- score, from `size` (how many rows, how long on average) and `candidate` (every row that holds a term, once for each).
-- fragment: terms
WITH term AS (
  SELECT lexeme, quote_literal(lexeme)::tsquery AS query FROM unnest(:terms::text[]) AS lexeme
)

-- fragment: occurrence
i.seq, i.length, t.lexeme,
         (SELECT cardinality(w.positions) FROM unnest(i.words) AS w WHERE w.lexeme = t.lexeme)::float8 AS frequency

-- fragment: bm25
, rarity AS (
  SELECT lexeme, ln(1 + (size.total - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM candidate, size GROUP BY lexeme, size.total
)
SELECT c.seq,
       sum(r.weight * c.frequency * (:k1 + 1) / (c.frequency + :k1 * (1 - :b + :b * c.length / size.length)))::float8
         AS score
FROM candidate c JOIN rarity r ON r.lexeme = c.lexeme CROSS JOIN size
GROUP BY c.seq ORDER BY score DESC, c.seq DESC LIMIT :limit

-- Over what one agent can recall now.
-- name: search_memories
{terms}, size AS (
  SELECT count(*) AS total, avg(length) AS length FROM memory_index
  WHERE tenant_id = :tenant AND agent_id = :agent AND kind = ANY(:kinds) AND (expires_at IS NULL OR expires_at > :now)
), candidate AS (
  SELECT {occurrence}
  FROM term t JOIN memory_index i ON i.words @@ t.query
  WHERE i.tenant_id = :tenant AND i.agent_id = :agent AND i.kind = ANY(:kinds)
    AND (i.expires_at IS NULL OR i.expires_at > :now)
){bm25}

-- Exact: one agent's vectors are few. MATERIALIZED keeps vectors of other lengths away from the comparison.
-- name: nearest_memories
WITH own AS MATERIALIZED (
  SELECT seq, embedding FROM memory_index
  WHERE tenant_id = :tenant AND agent_id = :agent AND kind = ANY(:kinds) AND embedder_id = :embedder_id
    AND (expires_at IS NULL OR expires_at > :now)
)
SELECT seq, 1 - (embedding <=> :vector::halfvec) AS score FROM own
ORDER BY embedding <=> :vector::halfvec, seq DESC LIMIT :limit

-- All that one agent can recall now, as columns of big-endian numbers: a row each would cost more than the search.
-- name: memory_columns
SELECT string_agg(int8send(seq), '' ORDER BY seq),
       string_agg(int8send(coalesce(hashtextextended(session_id, 0), 0)), '' ORDER BY seq),
       string_agg(int4send(length), '' ORDER BY seq),
       string_agg(int8send(since), '' ORDER BY seq),
       string_agg(int2send(
         CASE WHEN kind <> 'episode' THEN 0 ELSE coalesce(array_position(:speakers::text[], role), 0) END::smallint
       ), '' ORDER BY seq),
       string_agg(float4send(
         (CASE WHEN embedder_id = :embedder_id THEN coalesce(nullif(1 - (embedding <=> :vector::halfvec), 'NaN'), 0)
          ELSE 'NaN' END)::real
       ), '' ORDER BY seq)
FROM memory_index
WHERE tenant_id = :tenant AND agent_id = :agent AND kind = ANY(:kinds) AND (expires_at IS NULL OR expires_at > :now)
  AND since <= :until

-- Where each of the terms occurs among them, and how often.
-- name: memory_occurrences
{terms}
SELECT found.lexeme, string_agg(int8send(found.seq), '' ORDER BY found.seq),
       string_agg(float4send(found.frequency::real), '' ORDER BY found.seq)
FROM (
  SELECT {occurrence}
  FROM term t JOIN memory_index i ON i.words @@ t.query
  WHERE i.tenant_id = :tenant AND i.agent_id = :agent AND i.kind = ANY(:kinds)
    AND (i.expires_at IS NULL OR i.expires_at > :now) AND i.since <= :until
) AS found
GROUP BY found.lexeme

-- name: search_chunks
{terms}, size AS (
  SELECT count(*) AS total, avg(length) AS length FROM chunk_index
  WHERE tenant_id = :tenant AND (:any_category OR category = ANY(:categories))
), candidate AS (
  SELECT {occurrence}
  FROM term t JOIN chunk_index i ON i.words @@ t.query
  WHERE i.tenant_id = :tenant AND (:any_category OR i.category = ANY(:categories))
){bm25}

-- name: chunks_ever
SELECT last_id FROM shelves WHERE tenant_id = :tenant AND shelf = 'knowledge'

-- name: nearest_chunks
WITH own AS MATERIALIZED (
  SELECT seq, embedding FROM chunk_index
  WHERE tenant_id = :tenant AND embedder_id = :embedder_id AND (:any_category OR category = ANY(:categories))
)
SELECT seq, 1 - (embedding <=> :vector::halfvec) AS score FROM own
ORDER BY embedding <=> :vector::halfvec, seq DESC LIMIT :limit

-- name: find_nearest_index
SELECT to_regclass('chunk_index_nearest_{embedder_id}')

-- name: make_nearest_index
CREATE INDEX IF NOT EXISTS chunk_index_nearest_{embedder_id} ON chunk_index
USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops) WHERE embedder_id = {embedder_id}

-- name: scan_until_enough
SET LOCAL hnsw.iterative_scan = 'strict_order'

-- name: nearest_chunks_by_index
SELECT seq, 1 - (embedding::halfvec({dimensions}) <=> :vector::halfvec({dimensions})) AS score FROM chunk_index
WHERE tenant_id = :tenant AND embedder_id = {embedder_id} AND (:any_category OR category = ANY(:categories))
ORDER BY embedding::halfvec({dimensions}) <=> :vector::halfvec({dimensions}) LIMIT :limit

-- name: archive_memories
UPDATE memories SET archived_at = :now
WHERE tenant_id = :tenant AND agent_id = :agent AND archived_at IS NULL AND seq = ANY(:seqs)

-- name: remove_all_from_index
DELETE FROM memory_index WHERE tenant_id = :tenant AND agent_id = :agent AND seq = ANY(:seqs)

-- Rows are locked in order, so that two servers marking the same memories never wait for each other.
-- name: mark_retrieved
UPDATE memories SET last_retrieved_at = :at
WHERE tenant_id = :tenant AND agent_id = :agent AND seq IN (
  SELECT seq FROM memories
  WHERE tenant_id = :tenant AND agent_id = :agent AND seq = ANY(:seqs)
    AND (last_retrieved_at IS NULL OR last_retrieved_at < :at)
  ORDER BY seq FOR UPDATE
)
