"""Rules for prompts: blocks, budget, escaping, tokens."""
