-- Proposals become changes: of whatever cause, in whatever state. memories: those that a change adds, edits or ends,
-- each with the version it is made from, the one it has afterwards, and what undoing it takes.
ALTER TABLE proposals RENAME TO changes;
ALTER TABLE changes RENAME COLUMN folds TO memories;
ALTER TABLE changes ADD COLUMN cause TEXT NOT NULL DEFAULT 'consolidation';
ALTER TABLE changes ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE changes NO FORCE ROW LEVEL SECURITY;
UPDATE changes SET memories = (
  SELECT COALESCE(jsonb_agg(jsonb_build_object(
    'action', 'end', 'id', fold -> 'id', 'version', fold -> 'version',
    'new_version', COALESCE(fold -> 'ended_version', 'null'::jsonb),
    'before', CASE WHEN state IN ('applied', 'undone')
                   THEN jsonb_build_object('valid_to', COALESCE(fold -> 'valid_to', 'null'::jsonb)) ELSE '{}'::jsonb END,
    'after', '{}'::jsonb)), '[]'::jsonb)
  FROM jsonb_array_elements(memories) fold
) || jsonb_build_array(jsonb_build_object(
  'action', 'add', 'id', COALESCE('m-' || memory_seq, ''), 'version', NULL,
  'new_version', CASE WHEN memory_seq IS NOT NULL AND is_new THEN 1 END, 'before', '{}'::jsonb,
  'after', jsonb_build_object('kind', kind, 'tags', tags, 'origin', origin)));
UPDATE changes SET state = 'proposed' WHERE state = 'open';
UPDATE changes SET text = '' WHERE state IN ('applied', 'undone');
ALTER TABLE changes FORCE ROW LEVEL SECURITY;
ALTER TABLE changes DROP COLUMN kind;
ALTER TABLE changes DROP COLUMN tags;
ALTER TABLE changes DROP COLUMN origin;
ALTER TABLE changes DROP COLUMN memory_seq;
ALTER TABLE changes DROP COLUMN is_new;
ALTER INDEX proposals_by_user RENAME TO changes_by_user;

-- Number of the newest memory that consolidation has examined.
ALTER TABLE agents ADD COLUMN consolidated BIGINT NOT NULL DEFAULT 0;
