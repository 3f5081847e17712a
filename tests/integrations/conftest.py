"""Leaves out the tests that need agent frameworks where none is installed: `make test-integrations` runs them."""

from importlib.util import find_spec

# One of them stands for all. Where it is installed, any other that is missing is a failure.
collect_ignore = [] if find_spec("langgraph") else ["frameworks"]
# CrewAI does not go with the others.
collect_ignore += [] if find_spec("crewai") else ["crewai"]
