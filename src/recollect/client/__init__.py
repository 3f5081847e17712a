"""Client of a recollect server, with the verbs of the library."""
