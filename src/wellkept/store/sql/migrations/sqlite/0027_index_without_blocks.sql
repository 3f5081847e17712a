-- An agent's index is built from its rows again, whatever its size.
DROP TRIGGER index_blocks_of_deleted;
DROP TRIGGER index_blocks_of_inserted;
DROP TRIGGER index_blocks_of_changed;
DROP TRIGGER index_changes_of_prolonged;
DROP TRIGGER index_blocks_of_renewed;
DROP TABLE index_changes;
DROP TABLE index_blocks;
