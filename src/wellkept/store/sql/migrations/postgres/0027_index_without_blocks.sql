-- Only SQLite had these tables filled.
DROP TABLE index_changes;
DROP TABLE index_blocks;
