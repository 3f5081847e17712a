"""Moving memories: a whole tenant to a file and back, and what other programs remembered."""
