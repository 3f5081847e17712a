-- Built without blocking writers (see store.postgres.engine): each statement is a transaction of its own.
-- Memories without a vector, by agent: each recall looks for the newest of its own.
CREATE INDEX CONCURRENTLY memory_index_waiting ON memory_index (tenant_id, agent_id, seq) WHERE embedder_id IS NULL;
DROP INDEX memory_index_by_embedder;
