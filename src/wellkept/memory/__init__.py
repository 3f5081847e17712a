"""Memories: what is stored, kept, changed and ended, and the rules of each kind."""
