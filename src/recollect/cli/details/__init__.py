"""Big texts that prompts only refer to. The commands, and how each view shows what they answer."""
