"""Write memories: drafts, secrets, loop guard, duplicates, consolidation."""
