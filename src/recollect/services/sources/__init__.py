"""Where recall looks: each source proposes candidates, and `services.recall` ranks them together."""
