"""Secrets: find credentials in a text before it is written."""
