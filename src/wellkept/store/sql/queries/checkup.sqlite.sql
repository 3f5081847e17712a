-- fragment: stored_words
i.terms

-- name: set_memory_words
UPDATE memory_index SET terms = :terms WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq

-- name: set_chunk_words
UPDATE chunk_index SET terms = :terms, version = :version WHERE tenant_id = :tenant AND seq = :seq

-- name: durability
PRAGMA journal_mode

-- Ten findings are enough.
-- name: find_damage
PRAGMA integrity_check(10)

-- name: find_damage_quickly
PRAGMA quick_check(10)

-- name: find_lost_references
SELECT DISTINCT 'A row of ' || "table" || ' refers to a row of ' || parent || ' that is not there.'
FROM pragma_foreign_key_check LIMIT 10

-- name: list_schema
SELECT name, '' FROM sqlite_schema
UNION ALL
SELECT s.name, c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE s.type = 'table'
