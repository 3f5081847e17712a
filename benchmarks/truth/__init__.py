"""Whether what changed, what is over and what is to be forgotten stays away from prompts."""
