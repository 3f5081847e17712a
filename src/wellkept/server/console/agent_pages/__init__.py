"""Pages about one agent: details and the map."""
