"""Build prompts: gather, fold, fit the budget, log what was shown."""
