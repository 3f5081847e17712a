-- fragment: stored_words
i.words::text

-- name: set_memory_words
UPDATE memory_index SET words = :terms::tsvector, length = :length
WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq

-- name: set_chunk_words
UPDATE chunk_index SET words = :terms::tsvector, length = :length, version = :version
WHERE tenant_id = :tenant AND seq = :seq

-- name: durability
SELECT CASE WHEN current_setting('fsync') <> 'on' THEN 'fsync is off'
            WHEN current_setting('full_page_writes') <> 'on' THEN 'full_page_writes is off'
            WHEN current_setting('synchronous_commit') = 'off' THEN 'synchronous_commit is off'
            ELSE 'fsync' END

-- With checksums on, the server checks pages as it reads them and counts the failures here.
-- name: find_damage
SELECT 'The index ' || indexrelid::regclass || ' is not valid. Run: REINDEX INDEX ' || indexrelid::regclass
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace
UNION ALL
SELECT checksum_failures || ' pages had a wrong checksum when the server read them.'
FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
LIMIT 10

-- name: find_damage_quickly
SELECT 'The index ' || indexrelid::regclass || ' is not valid. Run: REINDEX INDEX ' || indexrelid::regclass
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace LIMIT 10

-- The server enforces references, except for constraints that were never validated.
-- name: find_lost_references
SELECT 'The constraint ' || conname || ' of ' || conrelid::regclass || ' was never checked.'
FROM pg_constraint WHERE NOT convalidated AND connamespace = current_schema()::regnamespace LIMIT 10

-- name: list_schema
SELECT relname, '' FROM pg_class WHERE relnamespace = current_schema()::regnamespace
UNION ALL
SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
