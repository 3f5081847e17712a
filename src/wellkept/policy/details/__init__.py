"""Rules for long texts behind references."""
