"""Contents of long texts, in files or in rows."""
