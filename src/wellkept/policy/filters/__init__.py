"""Filters of memories, documents and sessions: one small language for every interface."""
