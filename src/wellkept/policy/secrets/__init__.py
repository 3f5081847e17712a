"""Rules that recognise credentials in text."""
