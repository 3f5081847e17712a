"""Recall: find what helps with a question, over four sources, and say why."""
