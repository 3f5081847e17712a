-- fragment: store_bytes
pg_database_size(current_database())
