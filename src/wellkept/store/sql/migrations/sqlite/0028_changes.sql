-- Proposals become changes: of whatever cause, in whatever state. memories: those that a change adds, edits or ends,
-- each with the version it is made from, the one it has afterwards, and what undoing it takes.
ALTER TABLE proposals RENAME TO changes;
ALTER TABLE changes RENAME COLUMN folds TO memories;
ALTER TABLE changes ADD COLUMN cause TEXT NOT NULL DEFAULT 'consolidation';
ALTER TABLE changes ADD COLUMN actor TEXT NOT NULL DEFAULT '';
UPDATE changes SET memories = json_insert(
  (SELECT json_group_array(json_object(
     'action', 'end', 'id', json_extract(fold.value, '$.id'), 'version', json_extract(fold.value, '$.version'),
     'new_version', json_extract(fold.value, '$.ended_version'),
     'before', CASE WHEN changes.state IN ('applied', 'undone') THEN json_object('valid_to', json_extract(fold.value, '$.valid_to'))
                    ELSE json_object() END,
     'after', json_object()))
   FROM json_each(changes.memories) fold),
  '$[#]',
  json_object(
    'action', 'add', 'id', CASE WHEN memory_seq IS NULL THEN '' ELSE 'm-' || memory_seq END, 'version', NULL,
    'new_version', CASE WHEN memory_seq IS NOT NULL AND is_new THEN 1 END, 'before', json_object(),
    'after', json_object('kind', kind, 'tags', json(tags), 'origin', origin)));
UPDATE changes SET state = 'proposed' WHERE state = 'open';
UPDATE changes SET text = '' WHERE state IN ('applied', 'undone');
ALTER TABLE changes DROP COLUMN kind;
ALTER TABLE changes DROP COLUMN tags;
ALTER TABLE changes DROP COLUMN origin;
ALTER TABLE changes DROP COLUMN memory_seq;
ALTER TABLE changes DROP COLUMN is_new;
DROP INDEX proposals_by_user;
CREATE INDEX changes_by_user ON changes (tenant_id, agent_id, user_id, seq);

-- Number of the newest memory that consolidation has examined.
ALTER TABLE agents ADD COLUMN consolidated INTEGER NOT NULL DEFAULT 0;
