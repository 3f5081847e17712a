"""Access: API keys, logins and idempotency."""
