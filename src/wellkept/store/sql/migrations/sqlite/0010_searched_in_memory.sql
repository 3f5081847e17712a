-- A tenant's latest sessions, whoever's they are.
CREATE INDEX chat_sessions_by_time ON chat_sessions (tenant_id, updated_at, id);
