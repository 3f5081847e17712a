"""The servers: ways into the same memory for other programs."""
