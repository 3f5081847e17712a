"""The search index held in memory."""
