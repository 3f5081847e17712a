"""A tenant's view of the store: its agents, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from recollect.agent_memory import MAX_PAGE, PAGE, SEARCH_LIMIT, AgentMemory
from recollect.model import Agent, AuditEvent, AuditReport, Json, Kind
from recollect.policy.agents import AgentFields, checked_agent_fields
from recollect.policy.names import checked_owner
from recollect.policy.text import checked_text
from recollect.services.recall import checked_limit
from recollect.services.scan import Sighting
from recollect.tools import catalog
from recollect.wiring import Services

T = TypeVar("T")


class TenantMemory:
    """What a tenant's agents share, and the agents themselves."""

    def __init__(self, services: Services, id: str) -> None:
        self.id = id
        self._services = services
        self._store = services.store

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
        """Raises: NotFound, Invalid."""
        checked = checked_agent_fields(fields)
        owner, now = checked_owner(id, self.id), self._services.now()
        store = self._store

        def update() -> Agent:
            return store.update_agent(replace(store.get_agent(owner), updated_at=now, **checked))

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

    def scan(self) -> Iterator[Sighting]:
        """Every stored memory that seems to hold a secret, found one by one."""
        return self._services.scan(self.id)

    def allow_secret(self, text: str) -> int:
        """Say that what looks like a secret in `text` is none; only its hash is kept.

        Raises: Invalid when nothing does.
        """
        allowed = self._services.guard.allow(self.id, checked_text(text))
        message = f"Text that looked like a secret was allowed ({allowed} piece{'' if allowed == 1 else 's'})."
        self._store.add_event(
            AuditEvent(tenant=self.id, at=self._services.now(), action="secret.allow", message=message)
        )
        return allowed

    def audit_events(
        self, query: str = "", *, before: int | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[AuditEvent]:
        """What was done, newest first.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        return self._store.list_events(self.id, needle=checked_text(query, what="query"), before=before, limit=limit)

    def verify_audit(self) -> AuditReport:
        """Whether the audit log is whole: nothing changed, nothing missing."""
        return self._store.verify_events(self.id)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """Run a tool where no agent is speaking: tools that need one say so."""
        return catalog.call(None, name, arguments)

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
