-- The first edition checks the schema only when it opens a database. One that was open already would go on writing: it
-- knows no limits of keys, no audit_key and no list of contents. Without these two columns it refuses every key and
-- every change instead.
ALTER TABLE audit_log RENAME COLUMN folded TO folded_message;

ALTER TABLE api_keys RENAME COLUMN hash TO secret_hash;
