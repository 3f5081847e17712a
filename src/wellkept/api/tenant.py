"""Methods for a tenant's agents, sessions, keys, transfer and upkeep."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, Unpack

from wellkept.api.agent import MAX_PAGE, PAGE
from wellkept.api.agent_records import find_owner
from wellkept.arguments import CheckedMethods
from wellkept.caller import current_caller
from wellkept.errors import Forbidden, NotFound
from wellkept.language.names import check_user
from wellkept.language.values import check_limit
from wellkept.memory.rules_filters import SESSION_FIELDS, Where, parse_filter
from wellkept.memory.rules_kinds import AgentFields, check_agent_fields
from wellkept.memory.rules_trust import check_decision
from wellkept.model import (
    Agent,
    ApiKey,
    AuditEvent,
    ExportReport,
    ImportReport,
    IssuedKey,
    KeyScope,
    Kind,
    MaintenancePreview,
    Owner,
    Receipt,
    Session,
    TenantStats,
    UserCount,
)
from wellkept.model.stored import Place, place_of
from wellkept.upkeep.maintain import MaintenanceReport
from wellkept.upkeep.stats import DAYS, keep_agents
from wellkept.upkeep.walk import Progress

if TYPE_CHECKING:
    from wellkept.api.build import Services

T = TypeVar("T")
V = TypeVar("V")

APPEARANCE_FIELDS = frozenset(["colour", "icon"])
"""Fields of an agent that every caller may set."""


class TenantView(CheckedMethods):
    """Base class of a tenant's methods."""

    def __init__(self, services: Services, id: str) -> None:
        self.id = id
        self._services = services
        self._store = services.store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def _open(self, view: Callable[[Services, str], V], name: str) -> V:
        return view(self._services, self.id)

    def _owner(self, agent: str) -> Owner:
        """Raises: Invalid; Forbidden when the caller is limited to other agents."""
        return find_owner(agent, self.id)

    def _agent_owner(self, agent: str) -> Owner:
        """Return the owner of an agent that is to be changed. Raises: Invalid, Forbidden."""
        current_caller().check_all_users()
        return self._owner(agent)


class TenantAgents(TenantView):
    """Agents of a tenant."""

    def add(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Create an agent with the given fields: name, system_prompt, model, tools, colour, icon, is_active.

        Raises: Invalid, SecretRejected, Forbidden; Conflict when the id is taken.
        """
        owner, now = self._agent_owner(id), self._services.now()
        checked = self._check_fields(owner, fields)
        agent = Agent(owner=owner, created_at=now, updated_at=now, **{"name": owner.agent, **checked})
        return self._audit(agent.id, "agent.add", "made", lambda: self._store.add_agent(agent))

    def get(self, id: str) -> Agent:
        """Return one agent and its settings. Raises: NotFound, Forbidden."""
        return self._store.get_agent(self._owner(id))

    def list(self, *, after: str = "", limit: int = PAGE) -> Sequence[Agent]:
        """List agents by id, starting after the id `after`. Raises: Invalid."""
        limit, agents = check_limit(limit, most=MAX_PAGE), current_caller().agents
        if not agents:
            return self._store.list_agents(self.id, after=after, limit=limit)
        found = (self._store.find_agent(Owner(self.id, each)) for each in sorted(agents) if each > after)
        return [agent for agent in found if agent is not None][:limit]

    def update(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Change the given fields of an agent; do nothing if they already have these values.

        Raises: NotFound, Invalid, SecretRejected, Forbidden.
        """
        owner, now = self._agent_owner(id), self._services.now()
        checked = self._check_fields(owner, fields)
        old = self._store.get_agent(owner)
        if replace(old, **checked) == old:
            return old

        def update() -> Agent:
            return self._store.update_agent(replace(self._store.get_agent(owner), updated_at=now, **checked))

        return self._audit(owner.agent, "agent.update", "edited", update)

    def delete(self, id: str) -> None:
        """Delete an agent and everything it owns. Raises: NotFound, Forbidden."""
        owner = self._agent_owner(id)
        check_decision(current_caller().trust)
        self._audit(owner.agent, "agent.delete", "removed", lambda: self._store.delete_agent(owner))

    def count_memories(self, id: str) -> Mapping[Kind, int]:
        """Count an agent's memories of each kind."""
        return self._store.count_memories(self._owner(id))

    def count_memories_by_agent(self, ids: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        """Count the memories of each kind for many agents at once."""
        owners = [self._owner(id) for id in ids]
        if current_caller().user is not None:
            return {owner.agent: self._store.count_memories(owner) for owner in owners}
        return self._store.count_memories_by_agent(self.id, [owner.agent for owner in owners])

    def _check_fields(self, owner: Owner, fields: AgentFields) -> dict[str, Any]:
        """Check the fields of an agent.

        Raises: Invalid, SecretRejected; Forbidden when a caller of low trust sets an agent's prompt, model or tools.
        """
        checked, guard = check_agent_fields(fields), self._services.guard
        if not APPEARANCE_FIELDS.issuperset(checked):
            check_decision(current_caller().trust)
        if "system_prompt" in checked:
            checked["system_prompt"] = guard.check_text(self.id, checked["system_prompt"])
        guard.check_names(self.id, agent_id=owner.agent)
        for name in (field for field in checked if field not in ("system_prompt", "is_active")):
            values = checked[name]
            guard.check_names(self.id, **{name: values if isinstance(values, str) else "\n".join(values)})
        return checked

    def _audit(self, agent: str, action: str, done: str, work: Callable[[], T]) -> T:
        """Run `work` on an agent and add an audit event in the same transaction."""
        event = AuditEvent(
            tenant=self.id, at=self._services.now(), action=action, agent_id=agent, message=f"Agent {agent} was {done}."
        )

        def do() -> T:
            result = work()
            self._store.add_event(event)
            return result

        return self._store.transaction(self.id, do)


FOR_OPERATORS = (
    "`compact` rewrites the whole store while every tenant waits; it takes an operator's key. Without it, erased data "
    "is overwritten in place."
)


class TenantKeys(TenantView):
    """API keys of a tenant."""

    def create(
        self,
        scope: str = KeyScope.READ,
        *,
        name: str = "",
        expires_at: datetime | None = None,
        agents: Collection[str] | None = None,
        trust: str | None = None,
        user: str | None = None,
    ) -> IssuedKey:
        """Create an API key. The key is returned only once; the store keeps its hash.

        `scope` is "read", "write", "admin" or "operator". `agents` limits the key to these agents; None allows all.
        `trust` limits the memories it writes to this origin or a less trusted one, `user` all it does to this end user.

        Raises: Invalid, SecretRejected; Forbidden when the key could do more than the caller.
        """
        current_caller().check_whole_tenant()
        self._services.guard.check_names(self.id, name=name)
        return self._services.keys.add(
            self.id, scope, name=name, expires_at=expires_at, agents=agents, trust=trust, user=user
        )

    def list(self, *, after: Place | None = None, limit: int | None = None) -> Sequence[ApiKey]:
        """List keys, oldest first, including revoked and expired ones.

        `after` (`(created_at, id)`) and `limit` page through them; by default all are returned.

        Raises: Invalid, Forbidden.
        """
        current_caller().check_whole_tenant()
        most = None if limit is None else check_limit(limit, most=MAX_PAGE)
        return self._services.keys.list(self.id, after=after, limit=most)

    def revoke(self, id: str) -> None:
        """Revoke a key at once. It stays in the list. Raises: NotFound, Forbidden."""
        current_caller().check_whole_tenant()
        self._services.keys.revoke(self.id, id)


class TenantSessions(TenantView):
    """Conversations of all agents of a tenant."""

    def list(self, *, where: Where = None, before: Place | None = None, limit: int = PAGE) -> Sequence[Session]:
        """List conversations of all agents, most recently used first.

        `where` filters by user, created_at, updated_at and metadata (docs/filters.md). `before` (`place_of` a session)
        continues a listing.

        Raises: Invalid.
        """
        limit, caller, chosen = check_limit(limit, most=MAX_PAGE), current_caller(), parse_filter(where, SESSION_FIELDS)
        if not caller.agents:
            caller.check_all_users()
            return self._store.list_tenant_sessions(self.id, where=chosen, before=before, limit=limit)
        listed = partial(self._store.list_sessions, where=chosen, before=before, limit=limit)
        found = [each for agent in caller.agents for each in listed(self._owner(agent))]
        return sorted(found, key=place_of, reverse=True)[:limit]

    def get(self, id: str) -> Session:
        """Return a conversation of any agent. Raises: NotFound."""
        session, caller = self._store.find_tenant_session(self.id, id), current_caller()
        is_readable = session is not None and caller.is_allowed(session.owner.agent)
        if session is None or not is_readable or not self._owner(session.owner.agent).has(session.user):
            raise NotFound("There is no such session.")
        return session


class TenantUsers(TenantView):
    """End users of a tenant."""

    def list(self, *, after: str = "", limit: int = PAGE) -> Sequence[UserCount]:
        """List end users by id, starting after the id `after`, with the number of their memories and sessions.

        Raises: Invalid; Forbidden when the caller is limited to a user.
        """
        caller = current_caller()
        caller.check_all_users()
        limit = check_limit(limit, most=MAX_PAGE)
        return self._store.count_users(self.id, agents=caller.agents, after=after, limit=limit)


class TenantUpkeep(TenantView):
    """Maintenance and numbers of a tenant."""

    def stats(self, *, days: int = DAYS) -> TenantStats:
        """Count memories by kind, events by action, recalls and prompts of each of the last `days`, and what waits for
        a decision; list what expires next.

        Counting a large store takes a moment; its result is then repeated for a while (see `counted_at`). Notes in a
        workspace's file are not counted.

        Raises: Invalid; Forbidden when the caller is limited to a user.
        """
        caller = current_caller()
        caller.check_all_users()
        counted = self._services.stats(self.id, days)
        return keep_agents(counted, caller.agents) if caller.agents else counted

    def peek_stats(self, *, days: int = DAYS) -> TenantStats | None:
        """Return `stats` without waiting long: the former ones, or None, while a large store is counted.

        Raises: Invalid; Forbidden when the caller is limited to a user.
        """
        caller = current_caller()
        caller.check_all_users()
        counted = self._services.stats.peek(self.id, days)
        return counted if counted is None or not caller.agents else keep_agents(counted, caller.agents)

    def count_waiting(self) -> int:
        """Count the texts without a vector."""
        return self._store.count_unembedded(self.id)

    def preview(self, *, limit: int = PAGE) -> MaintenancePreview:
        """Return which episodes `maintain` would archive now; list the first `limit`. Changes nothing.

        Expired items and unused texts of details, which it archives and deletes, are not counted.

        Raises: Invalid, Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieval_marks.flush(self.id)
        return self._services.maintain.preview(self.id, limit=check_limit(limit, most=MAX_PAGE))

    def maintain(self, *, progress: Progress | None = None) -> MaintenanceReport:
        """Run `Wellkept.maintain` for this tenant alone.

        Raises: Conflict while another process runs maintenance; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieval_marks.flush(self.id)
        return self._services.maintain(self.id, progress=progress)


class TenantData(TenantView):
    """Export, import and permanent erasure of a tenant's data."""

    def export(
        self, path: str | Path | IO[bytes], *, progress: Progress | None = None, user: str | None = None
    ) -> ExportReport:
        """Export all data of the tenant, except keys, to a file that any engine can import.

        With `user`, export only the records of this end user, and the agents that have some.

        The name's ending `.gz` or `.zst` selects compression. The file is a snapshot of one moment, and gets its name
        only when it is complete. It is signed if `export_key` is set.

        Raises: Invalid when the file cannot be written; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieval_marks.flush(self.id)
        self._services.context_calls.flush(self.id)
        to = Path(os.path.expanduser(path)) if isinstance(path, str | Path) else path
        return self._services.export(self.id, to, progress, user=None if user is None else check_user(user))

    def import_(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        agent: str | None = None,
        merge: bool = False,
        remember: bool = False,
        trusted: bool = False,
        with_erased: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import a file: an export, or the memories of another program.

        `format` names the file's format if it cannot be detected, `agent` the owner of memories that name none. An
        export is restored without loss and existing records stay, so importing twice changes nothing. If ids clash,
        everything is refused, or with `merge` only the clashing records. `remember` also makes the messages of
        another program's conversations episodes that `recall` finds. `trusted` believes an export that is not signed
        with the `export_key` set here; otherwise its core memories wait for review. What was erased here is left out,
        unless `with_erased`. `dry_run` writes nothing and reports what would happen.

        Raises: Invalid when the file is incomplete, malformed or wrongly signed; Conflict when it clashes with existing
        records; Forbidden.
        """
        current_caller().check_whole_tenant()
        if current_caller().trust is not None:
            raise Forbidden("A file can hold memories of any origin; it takes a key without a limit on trust.")
        from wellkept.transfer import foreign

        wishes = foreign.ImportOptions(
            format=format,
            agent=agent,
            is_dry_run=dry_run,
            is_merged=merge,
            is_remembered=remember,
            is_trusted=trusted,
            with_erased=with_erased,
        )
        return self._services.import_(self.id, Path(os.path.expanduser(path)), wishes, progress)

    def import_formats(self) -> tuple[str, ...]:
        """Return the values `format` accepts."""
        return self._services.import_.formats

    def erase(
        self, subject: str, *, dry_run: bool = False, compact: bool | None = None, with_agents: bool | None = None
    ) -> Receipt:
        """Erase everything about a subject permanently.

        `subject` is `user:ID`, `agent:ID`, `session:ID`, `memory:AGENT/ID`, `tenant:ID`, or `text:WORDS` for everything
        that mentions the words. Without a prefix, an existing id of an agent, session or memory is taken as that,
        anything else as text. `dry_run` only lists what would be erased.

        `compact=True` rewrites the database files and blocks all writers meanwhile; False leaves the files alone; None
        overwrites free pages (SQLite) or vacuums (PostgreSQL).

        `with_agents` says if agents whose ids are made from the words of a text go with all they have. By default they
        go for a name of several words; a single word is refused if it would delete an agent.

        Raises: Invalid; NotFound when there is no such agent, session or memory; Conflict; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        if compact and current_caller().scope not in (None, KeyScope.OPERATOR):
            raise Forbidden(FOR_OPERATORS)
        return self._services.erase(self.id, subject, dry_run=dry_run, compact=compact, with_agents=with_agents)
