"""Details: big texts behind references."""
