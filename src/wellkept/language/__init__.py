"""Word lists of the languages that the rules know, one module for each."""
