"""Working memory: what a model is shown at a call, and what it was shown at earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory.view import AgentView
from recollect.model import ContextCall, WorkingMemory
from recollect.policy.text import checked_text
from recollect.services.gather import ToolResult
from recollect.services.recall import checked_limit

MAX_CALLS = 200
CALLS_PAGE = 20


class Contexts(AgentView):
    """The verbs around a model call."""

    def context(
        self,
        session_id: str,
        message: str = "",
        *,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[ToolResult] | None = None,
    ) -> WorkingMemory:
        """Everything a model should see before it answers `message`, as chat messages that fit `budget` tokens.

        Without a system prompt the agent's own is used; without tool results, what the session stored with that role.
        `layout` is "standard" or "cache_stable". What was shortened is in `truncations` and in the audit log.

        Raises: Invalid; OverBudget when the system prompt, the skills and the message alone do not fit.
        """
        return self._services.assemble(
            self.owner,
            session_id,
            message,
            system_prompt=system_prompt,
            budget=budget,
            layout=layout,
            tool_results=tool_results,
        )

    def context_calls(
        self, *, session_id: str = "", before: str = "", limit: int = CALLS_PAGE
    ) -> Sequence[ContextCall]:
        """What this agent was shown at its latest calls, newest first; `before` (an id) continues a listing.

        Raises: Invalid.
        """
        return self._services.context_calls.latest(
            self.owner,
            session_id=checked_text(session_id, what="session id"),
            before=checked_text(before, what="id"),
            limit=checked_limit(limit, most=MAX_CALLS),
        )

    def context_call(self, id: str) -> ContextCall:
        """What this agent was shown at one call and what was left out, each with its text as it reads now.

        Raises: NotFound.
        """
        return self._services.seen(self.owner, id)
