"""Readers for Markdown, text, HTML and PDF, which all return the same kind of parts."""
