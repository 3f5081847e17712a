"""Saying once what was said many times. The commands, and how each view shows what they answer."""
