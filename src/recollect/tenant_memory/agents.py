"""A tenant's agents: making, editing and removing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

from recollect.agent_memory import MAX_PAGE, PAGE, AgentMemory
from recollect.model import Agent, AuditEvent, Kind
from recollect.policy.agents import AgentFields, checked_agent_fields
from recollect.policy.names import checked_agent, checked_owner
from recollect.policy.text import checked_text
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView

T = TypeVar("T")


class Agents(TenantView):
    """The verbs that work on agents."""

    def agent(self, id: str) -> AgentMemory:
        """Raises: Invalid."""
        return AgentMemory(self._services, checked_owner(id, self.id))

    def add_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Make an agent: name, system_prompt, model, tools, colour, icon, is_active.

        Raises: Invalid; Conflict when there is one of that id.
        """
        owner, now = checked_owner(id, self.id), self._services.now()
        checked = checked_agent_fields(fields)
        agent = Agent(owner=owner, created_at=now, updated_at=now, **{"name": owner.agent, **checked})
        return self._recorded(agent.id, "agent.add", "made", lambda: self._store.add_agent(agent))

    def get_agent(self, id: str) -> Agent:
        """Raises: NotFound."""
        return self._store.get_agent(checked_owner(id, self.id))

    def list_agents(self, *, after: str = "", limit: int = PAGE) -> Sequence[Agent]:
        """By id, beginning behind `after`.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        return self._store.list_agents(self.id, after=checked_text(after, what="after"), limit=limit)

    def update_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Change an agent; what it says already is no change.

        Raises: NotFound, Invalid.
        """
        checked = checked_agent_fields(fields)
        owner, now = checked_owner(id, self.id), self._services.now()
        old = self._store.get_agent(owner)
        if replace(old, **checked) == old:
            return old

        def update() -> Agent:
            return self._store.update_agent(replace(self._store.get_agent(owner), updated_at=now, **checked))

        return self._recorded(owner.agent, "agent.update", "edited", update)

    def delete_agent(self, id: str) -> None:
        """Remove an agent and everything it owns.

        Raises: NotFound.
        """
        owner = checked_owner(id, self.id)
        self._recorded(owner.agent, "agent.delete", "removed", lambda: self._store.delete_agent(owner))

    def count_memories(self, id: str) -> Mapping[Kind, int]:
        """How many memories of each kind an agent has."""
        return self._store.count_memories(checked_owner(id, self.id))

    def count_memories_by_agent(self, ids: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """The same for many agents at once."""
        return self._store.count_memories_by_agent(self.id, [checked_agent(id) for id in ids])

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
