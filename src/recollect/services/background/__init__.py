"""Work done on background threads: writing, embedding, resting after failures."""
