"""The REST interface: one module for each group of routes, and the bodies they exchange."""
