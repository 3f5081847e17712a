"""Methods for a tenant: its agents, sessions, users, keys, documents, history, secrets, transfer and upkeep."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, Unpack

from wellkept.caller import current_caller
from wellkept.errors import Forbidden, Invalid, NotFound
from wellkept.extension import Progress
from wellkept.history.rules_history import COMPLETED, OWN_AREAS
from wellkept.knowledge import ingest as filing
from wellkept.knowledge.ingest import IngestReport
from wellkept.knowledge.rules_chunking import check_category
from wellkept.language.names import check_user
from wellkept.language.values import check_before, check_limit, check_storable, check_whole
from wellkept.memory.rules_filters import (
    DOCUMENT_FIELDS,
    EQUAL,
    EVENT_FIELDS,
    SESSION_FIELDS,
    Comparison,
    KnowledgeOptions,
    Where,
    join_conditions,
    parse_filter,
)
from wellkept.memory.rules_kinds import AgentFields, check_agent_fields
from wellkept.memory.rules_trust import check_decision
from wellkept.model import (
    ACTOR,
    Agent,
    ApiKey,
    AuditEvent,
    AuditHead,
    AuditReport,
    Chunk,
    Document,
    DocumentSize,
    ExportReport,
    HeadCheck,
    Hit,
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
    Workflow,
    WorkflowStep,
)
from wellkept.model.stored import Place, place_of
from wellkept.secrets.check import REJECTED, Sighting
from wellkept.upkeep.maintain import MaintenanceReport
from wellkept.upkeep.stats import DAYS, keep_agents

if TYPE_CHECKING:
    pass

from wellkept.api.views import MAX_PAGE, PAGE, SEARCH_LIMIT, TenantView

T = TypeVar("T")

APPEARANCE_FIELDS = frozenset(["colour", "icon"])
"""Fields of an agent that every caller may set."""


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


MAX_MESSAGE_CHARS = 2_000
MAX_META_CHARS = 10_000
MAX_EVENT = 2**62  # above every event number a database can hold
_ACTION = re.compile(r"[a-z][a-z0-9_]*(?:[.][a-z0-9_]+){1,4}")


class AuditLog(TenantView):
    """Audit log of a tenant."""

    def list(self, *, before: int | None = None, limit: int = SEARCH_LIMIT) -> Sequence[AuditEvent]:
        """List events, newest first.

        `before` (an event's number) continues a listing. `event.actor` is the id of the key, or the name of the
        program, that acted.

        Raises: Invalid.
        """
        return self.search("", before=before, limit=limit)

    def search(
        self, query: str, *, where: Where = None, before: int | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[AuditEvent]:
        """List events with `query` in their message, ignoring case, newest first. `recall` finds them by words.

        `where` filters by action, agent, actor and at (docs/filters.md).

        Raises: Invalid.
        """
        current_caller().check_all_users()
        agents, limit, before = current_caller().agents, check_limit(limit, most=MAX_PAGE), check_before(before)
        chosen = parse_filter(where, EVENT_FIELDS)
        return self._store.list_events(self.id, needle=query, where=chosen, agents=agents, before=before, limit=limit)

    def verify(self) -> AuditReport:
        """Verify the hash chain: report changed and missing events. Raises: Forbidden."""
        current_caller().check_all_users()
        return self._store.verify_events(self.id)

    def head(self) -> AuditHead:
        """Return the number and hash of the last event. Keep them where an attacker on the store cannot change them.

        Raises: Forbidden.
        """
        current_caller().check_all_users()
        return self._store.audit_head(self.id)

    def check_heads(self, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Compare earlier results of `head` with the log; a mismatch shows that the log was rewritten.

        Raises: Invalid.
        """
        current_caller().check_all_users()
        for each in heads:
            is_number = type(each.id) is int and 0 < each.id < MAX_EVENT
            if not is_number or not isinstance(each.hash, str):
                raise Invalid("A head needs the number of an event and its hash.")
        return self._store.check_heads(self.id, heads)

    def record(
        self, action: str, message: str, *, agent: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> AuditEvent:
        """Add your own event to the log permanently.

        `action` is a stable dotted word such as "order.refund". `agent` defaults to the caller's agent, if it has one.

        Raises: Invalid, Forbidden; SecretRejected when the event appears to contain a secret, in every mode, because
        events are never edited.
        """
        current_caller().check_all_users()
        agent = current_caller().own_agent(agent)
        event = AuditEvent(
            tenant=self.id,
            at=self._services.now(),
            action=_check_action(action),
            agent_id=None if agent is None else self._owner(agent).agent,
            message=_check_message(message),
            meta=_parse_meta({} if meta is None else meta),
        )
        text = f"{event.message}\n{json.dumps(event.meta, ensure_ascii=False)}"
        if found := self._services.guard.findings(self.id, text):
            refused = "An event was refused: it seems to hold a secret."
            self._store.add_event(replace(event, action="secret.refuse", message=refused, meta={}))
            raise self._services.guard.refuse(REJECTED, rule=found[0].rule)
        return self._store.add_event(event)


def _check_action(action: str) -> str:
    if len(action) > 100 or not _ACTION.fullmatch(action):
        raise Invalid("An action is two or more words in lower case with dots between them, such as order.refund.")
    area = action.partition(".")[0]
    if area in OWN_AREAS:
        raise Invalid(f"Actions that begin with {area!r} are wellkept's own; begin yours with another word.")
    return action


def _check_message(message: str) -> str:
    message = message.strip()
    if not 1 <= len(message) <= MAX_MESSAGE_CHARS:
        raise Invalid(f"A message has 1 to {MAX_MESSAGE_CHARS:,} characters.")
    return message


def _parse_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    if ACTOR in meta:
        raise Invalid(f"The name {ACTOR!r} in an event's meta is reserved for the key that recorded it; use another.")
    try:
        text = json.dumps(dict(meta), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Invalid("The meta of an event must be JSON: it holds a value JSON cannot represent.") from None
    if len(text) > MAX_META_CHARS:
        raise Invalid(f"The meta of an event has at most {MAX_META_CHARS:,} characters as JSON.")
    check_storable(meta, what="meta")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


class TenantSecrets(TenantView):
    """Texts of a tenant that look like secrets."""

    def scan(self, *, progress: Progress | None = None) -> Iterator[Sighting]:
        """Yield every stored record, of any shelf, that appears to contain a secret.

        `progress` is called with the number of rows done.

        Raises: Forbidden.
        """
        current_caller().check_whole_tenant()
        return self._services.scan(self.id, progress=progress)

    def allow(self, text: str) -> int:
        """Allow what looks like a secret in `text`; only its hash is stored. Return the number of pieces allowed.

        Raises: Invalid when nothing looks like a secret; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        allowed = self._services.guard.allow(self.id, text)
        message = f"Text that looked like a secret was allowed ({allowed} piece{'' if allowed == 1 else 's'})."
        event = AuditEvent(tenant=self.id, at=self._services.now(), action="secret.allow", message=message)
        self._store.add_event(event)
        return allowed


class TenantWorkflows(TenantView):
    """Workflows of a tenant and their steps, which agents find by recall."""

    def create(self, name: str) -> Workflow:
        """Start a workflow; its id is derived from its name. Raises: Invalid, SecretRejected, Forbidden."""
        current_caller().check_all_users()
        return self._services.workflows.begin(self.id, name)

    def record(
        self,
        *,
        workflow: str,
        step: str,
        output: str = "",
        agent: str | None = None,
        status: str = COMPLETED,
        is_new: bool = True,
    ) -> WorkflowStep:
        """Add a step and its output to the workflow with this id, or else to the newest one with this name.

        An unknown workflow is created, unless `is_new` is False: then `workflow` must be an id.

        Raises: Invalid, SecretRejected, NotFound, Forbidden.
        """
        current_caller().check_all_users()
        agent = current_caller().own_agent(agent)
        if agent is not None:
            self._owner(agent)
        return self._services.workflows.record(
            self.id, workflow=workflow, step=step, output=output, agent=agent, status=status, is_new=is_new
        )

    def get(self, id: str) -> Workflow:
        """Return one workflow. Raises: NotFound, Forbidden."""
        current_caller().check_all_users()
        return self._store.get_workflow(self.id, id)

    def list(self, *, after: str = "", limit: int = PAGE) -> Sequence[Workflow]:
        """List workflows by id, starting after the id `after`. Raises: Invalid, Forbidden."""
        current_caller().check_all_users()
        limit = check_limit(limit, most=MAX_PAGE)
        return self._store.list_workflows(self.id, after=after, limit=limit)

    def steps(self, workflow: str, *, after: int = 0, limit: int = PAGE) -> Sequence[WorkflowStep]:
        """List the steps of a workflow (by id) in order, starting after the position `after`.

        Raises: NotFound, Invalid.
        """
        current_caller().check_all_users()
        limit, caller = check_limit(limit, most=MAX_PAGE), current_caller()
        after = check_whole(after, "`after` (a position)")
        found: list[WorkflowStep] = []
        while page := self._store.list_steps(self.id, workflow, after=after, limit=limit):
            found += [each for each in page if each.agent_id is None or caller.is_allowed(each.agent_id)]
            if len(found) >= limit or not caller.agents:
                break
            after = page[-1].position
        return found[:limit]


class TenantKnowledge(TenantView):
    """Documents of a tenant."""

    def ingest(
        self,
        path_or_text: str | Path,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        prune: bool = False,
        progress: Progress | None = None,
        **fields: Unpack[filing.DocumentFields],
    ) -> IngestReport:
        """Ingest a text, a file (Markdown, text, HTML, PDF) or all such files below a folder.

        The fields are title, category, is_published, metadata (a JSON object of up to 8 KB) and secrets. Unchanged
        documents are skipped; changed ones replace their earlier version. For a folder, `include` and `exclude` are
        patterns such as `*.md`, `prune` removes documents whose file is gone, and failures are listed in the result.
        What seems to be a secret is replaced by a mark and listed in the result; `secrets="reject"` refuses the
        document instead.

        Raises: Invalid, SecretRejected; for a folder only when it cannot be read.
        """
        wishes, service = filing.DocumentOptions(**fields), self._services.ingest
        if not service.is_folder(path_or_text):
            return IngestReport(documents=(service(self.id, path_or_text, wishes),))
        return service.folder(
            self.id, Path(path_or_text), wishes, include=include, exclude=exclude, is_pruned=prune, progress=progress
        )

    def ingest_text(self, text: str, **fields: Unpack[filing.DocumentFields]) -> IngestReport:
        """Ingest a text, even one that looks like a path: for texts from untrusted sources. The fields are those of
        `ingest`.

        Raises: Invalid, SecretRejected.
        """
        wishes, content = filing.DocumentOptions(**fields), text.encode()
        return IngestReport(documents=(self._services.ingest.content(self.id, content, wishes, name="", source=""),))

    def ingest_bytes(self, content: bytes, name: str, **fields: Unpack[filing.DocumentFields]) -> IngestReport:
        """Ingest the content of a file by its `name`, which decides the format and identifies the document. The fields
        are those of `ingest`.

        Raises: Invalid, SecretRejected.
        """
        wishes = filing.DocumentOptions(**fields)
        base = Path(name.replace("\\", "/")).name
        stored = self._services.ingest.content(self.id, content, wishes, name=base, source=base)
        return IngestReport(documents=(stored,))

    def get(self, id: str) -> Document:
        """Return one document. Raises: NotFound."""
        return self._store.get_document(self.id, id)

    def passages(self, id: str) -> Sequence[Chunk]:
        """List the passages of a document in order. Raises: NotFound."""
        return self._store.list_chunks(self.id, self._store.get_document(self.id, id).id)

    def list(
        self, *, category: str = "", where: Where = None, after: str = "", limit: int = PAGE
    ) -> Sequence[Document]:
        """List documents by id, starting after the id `after`, optionally of one category.

        `where` filters by title, category, source, created_at, updated_at and metadata (docs/filters.md).

        Raises: Invalid.
        """
        of_category = Comparison("category", EQUAL, check_category(category)) if category else None
        return self._store.list_documents(
            self.id,
            where=join_conditions(of_category, parse_filter(where, DOCUMENT_FIELDS)),
            after=after,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def browse(
        self, *, category: str = "", after: tuple[str, str] = ("", ""), limit: int = PAGE
    ) -> Sequence[DocumentSize]:
        """List documents with their sizes by title, ignoring case, optionally of one category.

        `after` (the title and id of a document) continues a listing.

        Raises: Invalid.
        """
        return self._store.list_documents_by_title(
            self.id,
            where=Comparison("category", EQUAL, check_category(category)) if category else None,
            after=after,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def count_categories(self) -> Mapping[str, int]:
        """Count the documents of each category; an empty one stands for none."""
        return self._store.count_categories(self.id)

    def update(
        self,
        id: str,
        *,
        title: str | None = None,
        category: str | None = None,
        is_published: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Change the title, category, publication or metadata of a document. Only published documents are found.

        `metadata` replaces all of its metadata.

        Raises: NotFound, Invalid, SecretRejected, Conflict.
        """
        changes = filing.DocumentOptions(title=title, category=category, is_published=is_published, metadata=metadata)
        return self._services.ingest.update(self.id, id, changes)

    def delete(self, id: str) -> None:
        """Delete a document and its passages permanently. Raises: NotFound."""
        self._services.ingest.delete(self.id, id)

    def search(self, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Search published documents for passages and return the best `limit` (5).

        Empty `categories` means all; `where` filters the documents as in `list_documents`; `min_relevance` replaces the
        floor.

        Raises: Invalid.
        """
        return self._services.search_knowledge(self.id, query, **options)
