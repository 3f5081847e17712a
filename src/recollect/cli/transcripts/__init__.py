"""Conversations. The commands, and how each view shows what they answer."""
