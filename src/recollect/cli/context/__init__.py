"""Working memory: the commands, and how each view shows what they answer."""
