"""What an agent shares with others: skills."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory.view import AgentView
from recollect.model import Skill


class Knowledge(AgentView):
    """The verbs that read what an agent did not write itself."""

    def skills(self) -> Sequence[Skill]:
        """What this agent is taught by files, by name."""
        return self._services.skills.for_agent(self.owner)
