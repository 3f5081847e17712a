-- Logins to the console and the links that make one, by the hash of the secret that the browser holds. They refer to a
-- key, which is verified at each request.
CREATE TABLE console_logins (
  tenant_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  key_id TEXT NOT NULL,
  is_link INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, hash)
) STRICT;
