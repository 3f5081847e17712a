"""Client of a wellkept server, with the verbs of the library."""
