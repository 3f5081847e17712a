"""Notes in a workspace's file, and the router that joins them with the database. See `docs/notes-file.md`."""
