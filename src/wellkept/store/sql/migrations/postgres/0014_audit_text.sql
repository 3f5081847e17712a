-- The meta of an event as the text that is hashed: JSONB writes numbers in its own way, 1e16 as 10000000000000000.
ALTER TABLE audit_log
  ALTER COLUMN meta DROP DEFAULT,
  ALTER COLUMN meta TYPE TEXT USING meta::text,
  ALTER COLUMN meta SET DEFAULT '{}';
