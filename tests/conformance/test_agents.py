"""`ports.AgentStore`, by the contract that authors of other back ends use."""

from wellkept.testing.conformance import AgentConformance


class TestAgents(AgentConformance):
    """On every engine."""
