"""What an agent shares with others: skills and documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recollect.agent_memory.view import AgentView
from recollect.model import Hit, Skill


class Knowledge(AgentView):
    """The verbs that read what an agent did not write itself."""

    def skills(self) -> Sequence[Skill]:
        """What this agent is taught by files, by name."""
        return self._services.skills.for_agent(self.owner)

    def search_knowledge(self, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """The passages of the tenant's documents that fit a question best, by words and by meaning, within the
        categories this agent is limited to; no category means all of those.

        Raises: Invalid.
        """
        return self._services.search_knowledge.for_agent(self.owner, query, categories=categories, limit=limit)
