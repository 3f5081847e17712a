"""`TenantMemory`: every verb of one tenant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar, Unpack

from recollect.api.agent import MAX_PAGE, PAGE, AgentMemory
from recollect.api.tenant_history import AuditLog, History, Knowledge, TenantView, Workflows
from recollect.caller import current_caller
from recollect.errors import Forbidden, NotFound
from recollect.model import (
    Agent,
    ApiKey,
    AuditEvent,
    Exported,
    Imported,
    IssuedKey,
    KeyScope,
    Kind,
    Owner,
    Receipt,
    Session,
)
from recollect.policy.agents import AgentFields, checked_agent_fields
from recollect.policy.memories.trust import check_decision
from recollect.policy.text import checked_text
from recollect.ports import Place, place_of
from recollect.services.recall.recall import checked_limit
from recollect.services.transfer.importing import ImportWishes
from recollect.services.upkeep.maintain import MaintenanceReport
from recollect.services.walk import Progress

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


FOR_OPERATORS = (
    "`compact` writes the whole store anew, and every tenant waits meanwhile; it takes an operator's key. Without it, "
    "what was erased is overwritten in place."
)


class Erasure(TenantView):
    """The verb that leaves no trace."""

    def erase(self, subject: str, *, dry_run: bool = False, compact: bool | None = None) -> Receipt:
        """Remove everything about a subject, for good: `agent:ID`, `session:ID`, `memory:AGENT/ID`, `tenant:ID`, or
        `text:WORDS` for all that mentions them. Without a kind, an id means what it names, and other words a text.

        `dry_run` only lists what would go. With `compact`, the database's files are written anew and nobody can write
        meanwhile. False leaves them as they are; None overwrites what SQLite's do not use and vacuums PostgreSQL's.

        Raises: Invalid; NotFound when there is no such agent, session or memory; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        if compact and current_caller().scope not in (None, KeyScope.OPERATOR):
            raise Forbidden(FOR_OPERATORS)
        return self._services.erase(self.id, subject, dry_run=dry_run, compact=compact)


class Keys(TenantView):
    """The verbs that decide who may come in."""

    def add_key(
        self,
        scope: str = KeyScope.READ,
        *,
        name: str = "",
        expires_at: datetime | None = None,
        agents: Collection[str] | None = None,
        trust: str | None = None,
    ) -> IssuedKey:
        """Make a key that allows `scope` ("read", "write", "admin" or "operator"). `agents` limits it to these agents
        (None: it is for all); `trust` to writing memories of this origin or of one that is trusted less. It is told
        this once; only its hash is kept.

        Raises: Invalid; Forbidden when it could do more than the caller.
        """
        current_caller().check_whole_tenant()
        return self._services.keys.add(self.id, scope, name=name, expires_at=expires_at, agents=agents, trust=trust)

    def list_keys(self, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """Keys, oldest first, also those that were revoked or have expired: all, or `limit` of them behind the one
        made then with that id.

        Raises: Invalid, Forbidden.
        """
        current_caller().check_whole_tenant()
        return self._services.keys.list(
            self.id, after=after, limit=None if limit is None else checked_limit(limit, most=MAX_PAGE)
        )

    def revoke_key(self, id: str) -> None:
        """From now on the key opens nothing. It stays in the list.

        Raises: NotFound, Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.keys.revoke(self.id, id)


class Transcripts(TenantView):
    """The verbs that look at conversations."""

    def sessions(self, *, before: Place | None = None, limit: int = PAGE) -> Sequence[Session]:
        """Conversations of every agent, the one used last first; `before` (`place_of` a session) continues a listing.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        if not current_caller().agents:
            return self._store.list_tenant_sessions(self.id, before=before, limit=limit)
        owners = [Owner(self.id, agent) for agent in current_caller().agents]
        found = [each for owner in owners for each in self._store.list_sessions(owner, before=before, limit=limit)]
        return sorted(found, key=place_of, reverse=True)[:limit]

    def session(self, id: str) -> Session:
        """A conversation, whichever agent's it is.

        Raises: NotFound.
        """
        session = self._store.find_tenant_session(self.id, id)
        if session is None or not current_caller().is_allowed(session.owner.agent):
            raise NotFound("There is no such session.")
        return session


class Upkeep(TenantView):
    """The verbs that let memories fade."""

    def count_waiting(self) -> int:
        """How many texts have no vector yet."""
        return self._store.count_unembedded(self.id)

    def maintain(self, *, progress: Progress | None = None) -> MaintenanceReport:
        """What `Recollect.maintain` does, for this tenant alone.

        Raises: Conflict while another process is at it; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieved.flush(self.id)
        return self._services.maintain(self.id, progress=progress)


class Transfer(TenantView):
    """The verbs that move a tenant."""

    def export(self, path: str | Path | IO[bytes], *, progress: Progress | None = None) -> Exported:
        """Write everything the tenant has, except keys, to a file that any engine can import; `.gz` and `.zst` at the
        end of its name compress it. It is written as of one moment, and has its name only when it is whole.

        Raises: Invalid when it cannot be written; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieved.flush(self.id)
        self._services.context_calls.flush(self.id)
        to = Path(path).expanduser() if isinstance(path, str | Path) else path
        return self._services.export(self.id, to, progress)

    def import_(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        agent: str | None = None,
        merge: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        """Take in a file: an export, or what another program remembered (`format`, if the file does not show it;
        `agent`, for memories that name none). An export comes in without loss; what is there already stays as it is, so
        importing twice changes nothing. Where ids clash all of it is refused, or with `merge` only what clashes.
        `dry_run` writes nothing and tells what would happen.

        Raises: Invalid when the file is not whole or makes no sense; Conflict when it clashes with what is here;
        Forbidden.
        """
        current_caller().check_whole_tenant()
        if current_caller().trust is not None:
            raise Forbidden("A file can hold memories of any origin; it takes a key without a limit on trust.")
        wishes = ImportWishes(format=format, agent=agent, is_dry_run=dry_run, is_merged=merge)
        return self._services.import_(self.id, Path(path).expanduser(), wishes, progress)

    def import_formats(self) -> tuple[str, ...]:
        """What `format` may be."""
        return self._services.import_.formats


__all__ = ["AuditLog", "TenantMemory"]


class TenantMemory(Agents, Transcripts, Workflows, History, Knowledge, Keys, Transfer, Upkeep, Erasure):
    """What a tenant's agents share, and the agents themselves."""

    @property
    def audit(self) -> AuditLog:
        """What was done in the tenant."""
        return AuditLog(self._services, self.id)
