-- fragment: created_day
CASE WHEN created_at < :since THEN '' ELSE to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') END

-- fragment: event_day
to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD')

-- fragment: by_title
lower(title) COLLATE "C"

-- fragment: entry_bytes
pg_column_size(memory_index.*)
