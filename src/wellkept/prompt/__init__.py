"""Prompts: transcripts, summaries and the working memory of one model call."""
