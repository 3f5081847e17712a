"""Work done on background threads: writing, embedding, pausing after failures."""
