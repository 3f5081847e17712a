-- Parts of an agent's search index in the form in which it is used, so that a new process need not build it from rows.
-- A block holds all entries of a closed range of numbers, as they were when `agents.rewrites` had this value.
CREATE TABLE index_blocks (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  embedder_id INTEGER NOT NULL,
  rewrites INTEGER NOT NULL,
  format INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, last_seq, first_seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT;

-- Entries of blocks whose end has moved since.
CREATE TABLE index_changes (
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  rewrites INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, rewrites, seq),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- No block outlives an entry: what is deleted or erased leaves the blocks in the same statement, whoever runs it.
CREATE TRIGGER index_blocks_of_deleted AFTER DELETE ON memory_index BEGIN
  DELETE FROM index_blocks WHERE tenant_id = OLD.tenant_id AND agent_id = OLD.agent_id AND last_seq >= OLD.seq AND first_seq <= OLD.seq; END;

CREATE TRIGGER index_blocks_of_inserted AFTER INSERT ON memory_index BEGIN
  DELETE FROM index_blocks WHERE tenant_id = NEW.tenant_id AND agent_id = NEW.agent_id AND last_seq >= NEW.seq AND first_seq <= NEW.seq; END;

CREATE TRIGGER index_blocks_of_changed AFTER UPDATE OF terms, embedder_id, vector, kind, session_id, role, since ON memory_index BEGIN
  DELETE FROM index_blocks WHERE tenant_id = OLD.tenant_id AND agent_id = OLD.agent_id AND last_seq >= OLD.seq AND first_seq <= OLD.seq; END;

CREATE TRIGGER index_changes_of_prolonged AFTER UPDATE OF expires_at, version ON memory_index BEGIN
  INSERT OR IGNORE INTO index_changes (tenant_id, agent_id, rewrites, seq)
  SELECT a.tenant_id, a.id, a.rewrites, OLD.seq FROM agents a
  WHERE a.tenant_id = OLD.tenant_id AND a.id = OLD.agent_id
    AND EXISTS (SELECT 1 FROM index_blocks b WHERE b.tenant_id = a.tenant_id AND b.agent_id = a.id); END;

CREATE TRIGGER index_blocks_of_renewed AFTER UPDATE OF life ON agents BEGIN
  DELETE FROM index_blocks WHERE tenant_id = OLD.tenant_id AND agent_id = OLD.id; END;
