"""Ingest and search documents; load skills."""
