"""Pages about the whole tenant: history, users, documents and upkeep."""
