"""Rules for memories: kinds, importance, lifetime, duplicates, trust."""
