"""Talking to an agent. The commands, the conversation itself, and how each view shows it."""
