"""Upkeep: maintenance, background work, erasure and checks."""
