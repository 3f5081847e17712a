"""Facts: what a user's turns state, what a new statement ends, and what is to be forgotten."""
