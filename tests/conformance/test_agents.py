"""`SqlStore`, by the contract that authors of other back ends use."""

from tests.conformance.kit import AgentConformance


class TestAgents(AgentConformance):
    """On every engine."""
