"""Search index in memory."""
