-- Logins to the console and the links that make one, by the hash of the secret that the browser holds. They refer to a
-- key, which is verified at each request.
CREATE TABLE console_logins (
  tenant_id TEXT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  key_id TEXT NOT NULL,
  is_link BOOLEAN NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);

ALTER TABLE console_logins ENABLE ROW LEVEL SECURITY;
ALTER TABLE console_logins FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON console_logins
  USING (tenant_id = nullif(current_setting('@setting@', true), ''))
  WITH CHECK (tenant_id = nullif(current_setting('@setting@', true), ''));
