"""A tenant's agents: making, editing and removing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from recollect.agent_memory import MAX_PAGE, PAGE, AgentMemory
from recollect.caller import current_caller
from recollect.model import Agent, AuditEvent, Kind, Owner
from recollect.policy.agents import AgentFields, checked_agent_fields
from recollect.policy.text import checked_text
from recollect.policy.trust import check_decision
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView

T = TypeVar("T")

LOOKS = frozenset(["colour", "icon"])
"""The fields of an agent that every caller may set."""


class Agents(TenantView):
    """The verbs that work on agents."""

    def agent(self, id: str) -> AgentMemory:
        """Raises: Invalid, Forbidden."""
        return AgentMemory(self._services, self._owner(id))

    def add_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Make an agent: name, system_prompt, model, tools, colour, icon, is_active.

        Raises: Invalid, Forbidden; Conflict when there is one of that id.
        """
        owner, now = self._owner(id), self._services.now()
        checked = _checked_fields(fields)
        agent = Agent(owner=owner, created_at=now, updated_at=now, **{"name": owner.agent, **checked})
        return self._recorded(agent.id, "agent.add", "made", lambda: self._store.add_agent(agent))

    def get_agent(self, id: str) -> Agent:
        """Raises: NotFound, Forbidden."""
        return self._store.get_agent(self._owner(id))

    def list_agents(self, *, after: str = "", limit: int = PAGE) -> Sequence[Agent]:
        """By id, beginning behind `after`.

        Raises: Invalid.
        """
        limit, after = checked_limit(limit, most=MAX_PAGE), checked_text(after, what="after")
        agents = current_caller().agents
        if not agents:
            return self._store.list_agents(self.id, after=after, limit=limit)
        found = (self._store.find_agent(Owner(self.id, each)) for each in sorted(agents) if each > after)
        return [agent for agent in found if agent is not None][:limit]

    def update_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Change an agent; what it says already is no change.

        Raises: NotFound, Invalid, Forbidden.
        """
        checked = _checked_fields(fields)
        owner, now = self._owner(id), self._services.now()
        old = self._store.get_agent(owner)
        if replace(old, **checked) == old:
            return old

        def update() -> Agent:
            return self._store.update_agent(replace(self._store.get_agent(owner), updated_at=now, **checked))

        return self._recorded(owner.agent, "agent.update", "edited", update)

    def delete_agent(self, id: str) -> None:
        """Remove an agent and everything it owns.

        Raises: NotFound, Forbidden.
        """
        owner = self._owner(id)
        check_decision(current_caller().trust)
        self._recorded(owner.agent, "agent.delete", "removed", lambda: self._store.delete_agent(owner))

    def count_memories(self, id: str) -> Mapping[Kind, int]:
        """How many memories of each kind an agent has."""
        return self._store.count_memories(self._owner(id))

    def count_memories_by_agent(self, ids: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """The same for many agents at once."""
        return self._store.count_memories_by_agent(self.id, [self._owner(id).agent for id in ids])

    def _recorded(self, agent: str, action: str, done: str, work: Callable[[], T]) -> T:
        """Do something to an agent, and put it into the audit log in the same transaction."""
        event = AuditEvent(
            tenant=self.id,
            at=self._services.now(),
            action=action,
            agent_id=agent,
            message=f"Agent {agent} was {done}.",
        )

        def do() -> T:
            result = work()
            self._store.add_event(event)
            return result

        return self._store.transaction(self.id, do)


def _checked_fields(fields: AgentFields) -> dict[str, Any]:
    """Raises: Invalid; Forbidden when a caller of little trust decides what an agent is told and may do."""
    checked = checked_agent_fields(fields)
    if not LOOKS.issuperset(checked):
        check_decision(current_caller().trust)
    return checked
