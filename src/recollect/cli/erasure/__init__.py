"""Leaving no trace. The command, and how each view shows the receipt."""
