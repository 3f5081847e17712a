"""API keys and idempotency keys."""
