"""Maintain, check and erase."""
