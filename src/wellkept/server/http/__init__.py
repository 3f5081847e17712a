"""HTTP: the middlewares every request passes, and the way from a request to its route."""
