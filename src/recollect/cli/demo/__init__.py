"""A tour of what recollect does: real commands, on a store that is thrown away."""
