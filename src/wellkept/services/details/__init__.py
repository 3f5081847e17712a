"""Store, describe and read long texts."""
