"""Erasure of a subject, with a receipt.

Everything that mentions the subject is found, then removed in short transactions, then searched for again; rows written
in the meantime are removed in another round. An interrupted erasure can be run again. At the end, the bytes are removed
from files, logs and caches. The audit log records the number of rows per table and a hash of the subject, and nothing
of its content.

Messages of a conversation and events of the audit log keep their place and lose their text; all other rows are removed.
Derived rows are removed too: summaries, changes, and records of prompts that showed the subject.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from wellkept.access.keys import CACHE_TIME
from wellkept.errors import Conflict, Invalid, NotFound, StoreError
from wellkept.extension import Clock
from wellkept.history.rules_history import OWN_AREAS
from wellkept.language.names import change_seq, memory_id, memory_seq
from wellkept.memory.changes import Changes
from wellkept.model import (
    ACTOR,
    NO_USER,
    AuditEvent,
    Change,
    ChangeAction,
    ChangeCause,
    ChangeState,
    Erased,
    ErasureFinding,
    Json,
    Memory,
    Owner,
    Receipt,
    Subject,
    SubjectKind,
    Trace,
)
from wellkept.prompt.rules_escaping import strip_invisible
from wellkept.text_cache import clear_text_caches
from wellkept.upkeep.rules_erasure import (
    ERASED,
    OWN_EVENTS,
    OWN_WORDS,
    Needle,
    add_counts,
    excerpt,
    foreign_words,
    has_name_line,
    mark_cleared,
    mark_row,
    mark_subject,
    parse_subject,
    receipt_hash,
    subject_hash,
    text_subject,
)

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

PAGE = 500
OF_AGENTS = ("memories", "memory_versions", "changes", "context_calls", "details", "notes_file")
OF_USERS = ("memories", "memory_versions", "changes", "context_calls", "details")
OF_TENANTS = ("chat_sessions", "kb_documents", "workflows", "workflow_steps", "secret_allowances", "kb_chunks")
STAYS = frozenset(["chat_messages", "audit_log", "api_keys"])
"""Tables with rows that keep their place and lose their text."""


ERASE_EVENT = "erase.run"


class SubjectTraces:
    """Rows of a tenant that an erasure of a subject removes or clears."""

    def __init__(self, store: SqlStore, tenant: str, subject: Subject, *, with_agents: bool = True) -> None:
        """Find the rows of a subject; of a text, also `with_agents` whose ids are made from it.

        Raises: NotFound when there is no such agent, session or memory.
        """
        self._store = store
        self._tenant = tenant
        self.gone: list[Trace] = []
        self.cleared: list[Trace] = []
        self.agents: list[Trace] = []  # agents with a description that mentions the subject
        self.undone: list[tuple[Owner, str]] = []  # changes to undo first
        self.whole: list[str] = []  # agents that go because their ids are made from the words
        self.named: list[str] = []  # agent ids that contain the words and stay
        self.marks: list[str] = []  # of rows that go with others
        self.unread: list[str] = []  # details with an unreadable text
        if subject.kind is SubjectKind.TEXT:
            self._find_mentions(Needle(subject.text), with_agents=with_agents)
            return
        if subject.kind is SubjectKind.MEMORY:
            owner = Owner(self._tenant, subject.agent)
            memory = self._store.get_memory(owner, subject.id)
            self.gone.append(_memory_trace(owner, memory))
            versions = self._store.list_versions(owner, memory.id)
            self.marks += [mark_row("memory_versions", each.text, _stamp(each.replaced_at)) for each in versions]
        elif subject.kind is SubjectKind.SESSION:
            self._add_session(subject.id)
            self.marks.append(mark_subject(SubjectKind.SESSION, subject.id))
        elif subject.kind is SubjectKind.USER:
            self._add_user(subject.id)
            self.marks.append(mark_subject(SubjectKind.USER, subject.id))
        else:
            self._add_owners(subject)
        self._add_events(subject)
        if subject.kind in (SubjectKind.MEMORY, SubjectKind.SESSION, SubjectKind.USER):
            self._add_derived(is_derived=True)

    def list_marks(self) -> set[str]:
        """Return what recognises in an import all that is removed or cleared."""
        stays = [each for each in self.cleared if each.table in STAYS]
        emptied = [*self.agents, *(each for each in self.cleared if each.table not in STAYS)]
        marks = {*self.marks, *(each.mark for each in (*self.gone, *stays) if each.mark)}
        marks |= {mark_cleared(each.mark) for each in emptied if each.mark}
        named = {"agents": SubjectKind.AGENT, "chat_sessions": SubjectKind.SESSION}
        return marks | {mark_subject(named[each.table], str(each.key[0])) for each in self.gone if each.table in named}

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to erase."""
        return not (self.gone or self.cleared or self.agents)

    def _add_owners(self, subject: Subject) -> None:
        """Add one agent with everything it owns, or the whole tenant."""
        if subject.kind is SubjectKind.AGENT:
            self._store.get_agent(Owner(self._tenant, subject.agent))
        for owner in self._store.iter_owners(self._tenant):
            if subject.agent in ("", owner.agent):
                for table in OF_AGENTS:
                    self.gone += map(_shorten, self._walk(table, agent=owner.agent))
        for table in OF_TENANTS if subject.kind is SubjectKind.TENANT else ("chat_sessions", "workflow_steps"):
            rows = self._walk(table, agent=subject.agent)
            self.gone += [_shorten(each) for each in rows if subject.agent in ("", each.agent)]
        if subject.kind is SubjectKind.TENANT:
            self.cleared += [each for each in self._walk("api_keys") if each.texts[0]]
        self.gone += self._walk("agents", agent=subject.agent)

    def _add_session(self, session_id: str) -> None:
        self.gone += map(_shorten, self._walk("chat_sessions", session_id=session_id))
        for owner in self._store.iter_owners(self._tenant):
            for table in ("memories", "details", "context_calls"):
                rows = self._walk(table, agent=owner.agent, session_id=session_id)
                self.gone += map(_shorten, rows)
        if not self.gone:
            raise NotFound("There is no such session.")

    def _add_user(self, user: str) -> None:
        """Add the records of a user of any agent, what its sessions hold that names no user, and its keys."""
        sessions = [*self._walk("chat_sessions", user=user)]
        self.gone += map(_shorten, sessions)
        for owner in self._store.iter_owners(self._tenant):
            for table in OF_USERS:
                self.gone += map(_shorten, self._walk(table, agent=owner.agent, user=user))
            for session in (each for each in sessions if each.agent == owner.agent):
                for table in ("memories", "details", "context_calls"):
                    rows = self._walk(table, agent=owner.agent, session_id=session.id, user=NO_USER)
                    self.gone += map(_shorten, rows)
        keys = [key for key in self._store.list_keys(self._tenant) if key.user == user]
        # A key stays limited: to a user that does not exist.
        self.cleared += [Trace(table="api_keys", key=(key.id,), texts=(key.name,), has_ids=True) for key in keys]
        if not self.gone and not self.cleared:
            raise NotFound("There is no such user.")

    def _add_events(self, subject: Subject) -> None:
        """Add events recorded by programs, which may contain any text; our own events contain only ids."""
        names = {subject.id, *(each.id for each in self.gone if each.table == "chat_sessions")}
        for event in self._walk("audit_log"):
            # Ids of sessions may name the user.
            if subject.kind is SubjectKind.USER and not _split_ids(event.texts).isdisjoint(names):
                self.cleared.append(replace(_shorten(event), has_ids=False))
            if _is_own(event):
                continue
            is_meant = {
                SubjectKind.TENANT: True,
                SubjectKind.AGENT: event.agent == subject.agent,
                SubjectKind.SESSION: has_name_line(event.texts, [subject.id]),
            }.get(subject.kind, False)
            if is_meant and not _is_clear(event):
                self.cleared.append(_shorten(event))

    def _find_mentions(self, needle: Needle, *, with_agents: bool) -> None:
        derived = set[str]()
        agents = [each.id for each in self._walk("agents")]
        # An agent whose id is made from the words goes with all it owns: the id is in all of its rows.
        named = {each for each in agents if with_agents and needle.is_word_in(each)}
        self.whole += sorted(named)
        self.named += [each for each in agents if each not in named and needle.is_in(each)]
        for agent in sorted(named):
            self._add_owners(Subject(kind=SubjectKind.AGENT, agent=agent))
        for owner in self._store.iter_owners(self._tenant):
            for table in OF_AGENTS if owner.agent not in named else ():
                for each in self._walk(table, agent=owner.agent):
                    if self._is_mentioned(owner, each, needle):
                        self.gone.append(_shorten(each, needle))
                        derived |= _find_derived_id(each, needle)
        for table in (*OF_TENANTS, "chat_messages", "api_keys", "agents"):
            for each in self._walk(table):
                # An agent that was deleted before is named by steps only.
                is_by = with_agents and each.table == "workflow_steps" and needle.is_word_in(each.agent)
                if each.agent not in named and (is_by or needle.is_in_any(each.texts)):
                    self._add_trace(each, needle)
                    derived |= _find_derived_id(each, needle)
        self._add_mentioning_events(needle, derived, with_agents=with_agents)
        self._add_emptied_documents()
        self._add_summaries()
        self._add_derived(is_derived=False)

    def _add_mentioning_events(self, needle: Needle, derived: Collection[str], *, with_agents: bool) -> None:
        """Add events that mention the words, an id that is made from them, or an agent that goes."""
        for event in self._walk("audit_log"):
            texts, is_agent = _searched_texts(event), with_agents and needle.is_word_in(event.agent)
            is_mentioned = needle.is_in_any(texts) or bool(_split_ids(texts).intersection(derived))
            # Our own words may be part of a name; then only the whole name counts.
            if not is_mentioned and _is_own(event) and not needle.has_own_words_only(OWN_WORDS):
                is_mentioned = event.belongs_to != ERASE_EVENT and any(map(needle.is_word_in, event.texts))
            has_action = not _is_own(event) and needle.is_in(event.belongs_to)
            if is_agent or is_mentioned or has_action:
                self.cleared.append(replace(_shorten(event, needle), has_ids=is_agent, has_action=has_action))

    def _is_mentioned(self, owner: Owner, trace: Trace, needle: Needle) -> bool:
        if needle.is_in_any(trace.texts):
            return True
        if trace.table != "details":
            return False
        key = str(trace.key[0])
        try:
            return any(needle.is_in(piece) for piece in self._pieces(owner, key, needle.reach))
        # It was deleted in the meantime.
        except NotFound:
            return False
        # The text is missing or damaged, so its content is unknown.
        except StoreError:
            self.unread.append(f"{owner.agent}/{key}")
            return False

    def _pieces(self, owner: Owner, key: str, reach: int) -> Iterator[str]:
        """Yield the text of a detail in pieces, each with the end of the previous one, so that no match is split."""
        content, before = self._store.open_content(owner, key), ""
        for position in range(len(content.newlines)):
            piece = before + content.chunk(position)
            yield piece
            # Invisible characters do not count, or they could push a mention out of reach.
            before = strip_invisible(piece)[-reach:]

    def _add_trace(self, trace: Trace, needle: Needle) -> None:
        short = _shorten(trace, needle)
        if trace.table == "agents":
            self.agents.append(short)
        elif trace.table in STAYS:
            # The limits of a key, behind its name, are ids.
            self.cleared.append(replace(short, has_ids=trace.table == "api_keys" and needle.is_in_any(trace.texts[1:])))
        elif trace.table == "chat_sessions" and not needle.is_in_any((trace.id, trace.texts[2])):
            # Neither its id nor its user: only its summary or metadata mention the subject.
            self.cleared.append(short)
        else:
            self.gone.append(short)

    def _add_emptied_documents(self) -> None:
        """Add documents that lose all their passages."""
        gone = Counter(_document_id(each) for each in self.gone if each.table == "kb_chunks")
        if gone:
            every = Counter(_document_id(each) for each in self._walk("kb_chunks"))
            known = {each.id for each in self.gone if each.table == "kb_documents"}
            emptied = {id for id, count in gone.items() if count == every[id]} - known
            rows = self._walk("kb_documents") if emptied else ()
            self.gone += [_shorten(each) for each in rows if each.id in emptied]

    def _add_summaries(self) -> None:
        """Add summaries of messages that are cleared; they are made again when needed."""
        known = {each.belongs_to for each in (*self.cleared, *self.gone) if each.table == "chat_sessions"}
        touched = {each.belongs_to for each in self.cleared if each.table == "chat_messages"}
        for id in sorted(touched - known):
            session = self._store.find_tenant_session(self._tenant, id)
            if session is not None and (session.summary or session.summarized_count):
                self.cleared += map(_shorten, self._walk("chat_sessions", session_id=id))

    def _add_derived(self, *, is_derived: bool) -> None:
        """Add changes made from removed memories, prompts that showed these and, with `is_derived`, what was made."""
        for owner in self._store.iter_owners(self._tenant):
            gone = {memory_id(int(each.key[0])) for each in _select(owner, self.gone, "memories")}
            if is_derived and gone:
                gone |= self._add_facts(owner, gone)
            known = {each.key for each in _select(owner, self.gone, "changes")}
            for change in self._iter_changes(owner) if gone else ():
                made = [each.id for each in change.memories if each.action is ChangeAction.ADD and each.new_version]
                is_from = change.cause is ChangeCause.CONSOLIDATION and (change.text or made)
                if not is_from or gone.isdisjoint(each.id for each in change.memories if each.version is not None):
                    continue
                if is_derived and change.state is ChangeState.APPLIED:
                    self.undone.append((owner, change.id))
                    results = self._store.find_memories(owner, [memory_seq(id) or 0 for id in made]).values()
                    self.gone += [_memory_trace(owner, memory) for memory in results]
                    gone |= {memory.id for memory in results}
                key, at = (change_seq(change.id) or 0,), _stamp(change.created_at)
                if key not in known:
                    mark = mark_row("changes", change.text, at)
                    self.gone.append(
                        Trace(table="changes", key=key, agent=owner.agent, texts=(change.text,), mark=mark)
                    )
            self._add_prompts(owner, gone)

    def _add_facts(self, owner: Owner, turns: set[str]) -> set[str]:
        """Add the facts that were read out of these turns; one that another turn only repeats stays with it."""
        facts = [
            each
            for each in self._walk("memories", agent=owner.agent)
            # The last text has the sources, one in a line; the first is the turn that the fact was read from.
            if each.texts[-1].partition("\n")[0] in turns and memory_id(int(each.key[0])) not in turns
        ]
        self.gone += map(_shorten, facts)
        return {memory_id(int(each.key[0])) for each in facts}

    def _add_prompts(self, owner: Owner, memories: set[str]) -> None:
        names = memories | {each.id for each in _select(owner, self.gone, "details")}
        names |= {each.belongs_to for each in self.gone if each.table == "kb_chunks"}
        names |= {each.id for each in self.gone if each.table in ("workflow_steps", "kb_documents")}
        touched = {"chat_messages", "chat_sessions"}
        sessions = {each.belongs_to for each in (*self.cleared, *self.gone) if each.table in touched}
        known = {each.key for each in _select(owner, self.gone, "context_calls")}
        if names or sessions:
            for call in self._walk("context_calls", agent=owner.agent):
                is_shown = call.belongs_to in sessions or has_name_line(call.texts, names)
                if is_shown and call.key not in known:
                    self.gone.append(call)

    def _iter_changes(self, owner: Owner) -> Iterator[Change]:
        before = None
        while page := self._store.list_changes(owner, before=before, limit=PAGE):
            yield from page
            before = change_seq(page[-1].id)

    def _walk(self, table: str, *, agent: str = "", session_id: str = "", user: str | None = None) -> Iterator[Trace]:
        after: tuple[str | int, ...] = ()
        while page := self._store.list_traces(
            self._tenant, table, agent=agent, session_id=session_id, user=user, after=after, limit=PAGE
        ):
            yield from page
            after = page[-1].key


def iter_findings(found: SubjectTraces) -> Iterator[ErasureFinding]:
    """Yield the findings reported to the caller."""
    for traces, is_cleared in ((found.gone, False), ((*found.cleared, *found.agents), True)):
        for each in traces:
            yield ErasureFinding(
                table=each.table,
                agent=each.agent,
                id=each.id,
                is_cleared=is_cleared,
                excerpt=excerpt(next(iter(each.texts), "")),
            )


def _shorten(trace: Trace, needle: Needle | None = None) -> Trace:
    """Return a trace that keeps only an excerpt of its text, since there may be very many."""
    match = next((text for text in trace.texts if needle is not None and needle.is_in(text)), None)
    if needle is not None and match is not None:
        return replace(trace, texts=(needle.excerpt(match),))
    return replace(trace, texts=(excerpt(next(iter(trace.texts), "")),))


def _select(owner: Owner, traces: Iterable[Trace], table: str) -> list[Trace]:
    return [each for each in traces if (each.table, each.agent) == (table, owner.agent)]


def _memory_trace(owner: Owner, memory: Memory) -> Trace:
    key, mark = (memory_seq(memory.id) or 0,), mark_row("memories", memory.text, _stamp(memory.created_at))
    return _shorten(Trace(table="memories", key=key, agent=owner.agent, texts=(memory.text,), mark=mark))


def _stamp(moment: datetime) -> str:
    """Format a time as exports have it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _document_id(passage: Trace) -> str:
    return passage.belongs_to.rpartition("#")[0]


def _find_derived_id(trace: Trace, needle: Needle) -> set[str]:
    """Return the id of a row that was made from a name which mentions the needle."""
    named = {"workflows": trace.texts[:2], "kb_documents": trace.texts[:2], "details": trace.texts[:3]}
    return {trace.id} if needle.is_in_any(named.get(trace.table, ())) else set()


def _searched_texts(event: Trace) -> list[str]:
    """Return the texts of an event in which words may be part of others: not those of our own words."""
    if event.belongs_to == ERASE_EVENT:
        # Its hashes and tables are ours; only the actor has a name.
        lines = event.texts[-1].split("\n")
        return [value for name, value in pairwise(lines) if name == ACTOR]
    return [foreign_words(event.texts)] if _is_own(event) else list(event.texts)


def _split_ids(texts: Iterable[str]) -> set[str]:
    return {word.strip('.,:;()[]{}"') for text in texts for word in text.replace('"', " ").split()}


def _is_own(trace: Trace) -> bool:
    """Return True for an event of our own, which contains only ids and our own words."""
    area = trace.belongs_to.partition(".")[0]
    return trace.table == "audit_log" and (trace.belongs_to in OWN_EVENTS or area in OWN_AREAS)


def _is_clear(event: Trace) -> bool:
    return event.texts[0] == ERASED and all(text in ("", "{}") for text in event.texts[1:])


ROUNDS = 5
"""Maximum number of rounds, to remove rows written in the meantime."""

STEP = 500
"""Maximum rows removed in one transaction, so that other writers can run in between."""

STEP_CHARS = 1_000_000
"""Maximum characters of text in these rows; a single row may have more."""

REMOVAL_ORDER = {"changes": 0, "context_calls": 0}
REMOVAL_ORDER |= {"memories": 2, "chat_sessions": 2, "kb_documents": 2, "workflows": 2, "agents": 3}
"""Order in which the rows of tables are removed; those of all other tables come at 1."""

CLEARED = ("chat_sessions", "chat_messages", "api_keys")
"""Tables with rows that are cleared in steps. Sessions come first: their summaries are found through the messages."""

MAX_FOUND = 1_000
"""Maximum number of findings listed in a dry run; the counts cover all."""

MARK_STEP = 2_000
"""Maximum hashes of erased rows that are stored in one transaction."""

OfTenant = Callable[[str], None]
"""Method that writes the waiting values of a tenant, or drops its texts from a cache."""

EVER = datetime(9999, 1, 1, tzinfo=UTC)

AUDIT_STAYS = "The audit log, whose events name ids and times and hold no text."
HASHES_STAY = "Salted hashes of what was erased, by which an import recognises it."
KEYS_STAY = "The tenant's keys, without their names, and its number of ids given; revoke the keys to close it."
BACKUPS_STAY = "Copies made before: backups, exports, file system snapshots, and what prompts were sent elsewhere."
WHOLE_AGENTS = (
    "This would delete whole agents, because the word is part of their ids: {ids}. Say if they go with all they have "
    "(with_agents=True, --with-agents) or stay (with_agents=False, --keep-agents). Nothing was erased."
)
STILL_COMING = "New rows that mention the subject were written during every round; run the erasure again."


class Erase:
    """Service that erases a subject, or reports what it would erase."""

    def __init__(
        self,
        store: SqlStore,
        changes: Changes,
        now: Clock,
        *,
        flush: Sequence[OfTenant],
        forget: Sequence[OfTenant],
    ) -> None:
        self._store = store
        self._changes = changes
        self._now = now
        # Queued values would be written after the erasure, so they are flushed first.
        self._flush = flush
        # Caches hold texts of tenants in memory.
        self._forget = forget

    def __call__(
        self,
        tenant: str,
        query: str,
        *,
        dry_run: bool = False,
        compact: bool | None = None,
        with_agents: bool | None = None,
    ) -> Receipt:
        """Erase the subject that `query` names, or with `dry_run` only find it, and return a receipt.

        Raises: Invalid; NotFound when there is no such agent, session or memory; Conflict when a single word would
            delete an agent and `with_agents` does not say if it may.
        """
        for flush in self._flush:
            flush(tenant)
        subject = parse_subject(query, tenant) or self._resolve(tenant, query)
        found, at = SubjectTraces(self._store, tenant, subject, with_agents=with_agents is not False), self._now()
        if with_agents is None and not dry_run and found.whole and len(subject.text.split()) == 1:
            ids = ", ".join(found.whole)
            raise Conflict(WHOLE_AGENTS.format(ids=ids))
        receipt = Receipt(
            tenant=tenant,
            subject=subject.name,
            subject_hash=subject_hash(tenant, subject),
            at=at,
            is_dry_run=dry_run,
            removed={},
            cleared={},
            remains=_describe_remains(tenant, subject, found),
            remnants=tuple(
                f"The text of detail {each} could not be read and was not searched." for each in found.unread
            ),
        )
        if dry_run:
            done = _report_findings(receipt, found)
        else:
            done = self._erase(receipt, subject, found, compact, with_agents=with_agents is not False)
        return replace(done, hash=receipt_hash(done))

    def _resolve(self, tenant: str, query: str) -> Subject:
        """Return the subject of a query without a kind: the record with this id, or else the text itself.

        Raises: Invalid.
        """
        name = query.strip()
        seq = memory_seq(name)
        if seq is not None:
            having = [each for each in self._store.iter_owners(tenant) if seq in self._store.find_memories(each, [seq])]
            if len(having) > 1:
                raise Invalid(
                    f"{len(having)} agents have a memory {name}; name the agent: memory:{having[0].agent}/{name}."
                )
            if having:
                return Subject(kind=SubjectKind.MEMORY, agent=having[0].agent, id=name)
        if self._store.find_agent(Owner(tenant, name)) is not None:
            return Subject(kind=SubjectKind.AGENT, agent=name)
        if self._store.find_tenant_session(tenant, name) is not None:
            return Subject(kind=SubjectKind.SESSION, id=name)
        return text_subject(query)

    def _erase(
        self, receipt: Receipt, subject: Subject, found: SubjectTraces, compact: bool | None, *, with_agents: bool
    ) -> Receipt:
        for owner, id in found.undone:
            self._undo(owner, id)
        rest: SubjectTraces | None = found
        for _ in range(ROUNDS):
            if subject.kind is SubjectKind.USER:
                self._revoke_keys(receipt, [each.id for each in found.cleared if each.table == "api_keys"])
            erased, event = self._remove(receipt, subject, found)
            receipt = replace(
                receipt,
                removed=add_counts(receipt.removed, erased.removed),
                cleared=add_counts(receipt.cleared, erased.cleared),
                events=(*receipt.events, event),
            )
            rest = self._find_rest(receipt.tenant, subject, with_agents=with_agents)
            if rest is None:
                break
            found = rest
        remnants = list(receipt.remnants) + ([] if rest is None else [STILL_COMING])
        # What waited for a vector is gone.
        self._store.settle_queue(receipt.tenant, self._store.list_queue(receipt.tenant))
        swept = self._store.sweep_contents(receipt.tenant, stored_before=EVER)
        self._store.remove_files(receipt.tenant)
        for forget in self._forget:
            forget(receipt.tenant)
        self._store.forget_cached(receipt.tenant)
        clear_text_caches()
        remnants += self._store.scrub(compact=compact)
        removed = add_counts(receipt.removed, {"detail_contents": swept})
        return replace(receipt, removed=removed, remnants=tuple(remnants))

    def _find_rest(self, tenant: str, subject: Subject, *, with_agents: bool) -> SubjectTraces | None:
        """Return what is left of a subject, or has come since; None: nothing."""
        try:
            found = SubjectTraces(self._store, tenant, subject, with_agents=with_agents)
        # The subject no longer exists, as expected.
        except NotFound:
            return None
        return None if found.is_empty else found

    def _revoke_keys(self, receipt: Receipt, ids: Sequence[str]) -> None:
        """Revoke the keys of an erased user, and wait until no process accepts one any longer."""
        for id in ids:
            self._store.revoke_key(receipt.tenant, id, at=receipt.at)
        if ids:
            for forget in self._forget:
                forget(receipt.tenant)
            # Another process may have verified the key just before; what it stores meanwhile is found below.
            time.sleep(CACHE_TIME.total_seconds())

    def _undo(self, owner: Owner, id: str) -> None:
        """Undo a change, if that is still possible, so that the other memories it ended count again."""
        try:
            self._changes.undo(owner, id)
        except (Conflict, NotFound):
            return

    def _remove(self, receipt: Receipt, subject: Subject, found: SubjectTraces) -> tuple[Erased, int]:
        tenant, needle = receipt.tenant, Needle(subject.text)
        # Before the rows go, so that an interrupted erasure leaves none without a mark.
        marks = sorted(found.list_marks())
        for start in range(0, len(marks), MARK_STEP):
            self._store.keep_erased(tenant, marks[start : start + MARK_STEP], now=receipt.at)
        *steps, gone = _split_steps([*self._store.list_hanging(tenant, found.gone), *found.gone]) or [[]]
        before = Erased(removed={}, cleared={})
        for step in steps:
            before = _add_counts(before, self._store.erase_traces(tenant, step, ()))
        for table in CLEARED:
            for step in _split_steps(each for each in found.cleared if each.table == table):
                before = _add_counts(before, self._store.erase_traces(tenant, (), step))
        events = [each for each in found.cleared if each.table not in CLEARED]
        sealing = self._store.plan_sealing(tenant, events)

        def remove() -> tuple[Erased, int]:
            erased = _add_counts(before, self._store.erase_traces(tenant, gone, events, sealing=sealing))
            renamed = sum(self._clear_agent(Owner(tenant, each.agent), needle) for each in found.agents)
            # A stored answer may quote anything, even in nested JSON, so all answers are removed. The keys stay, to
            # guard against retries, unless nothing is left that a retry could repeat.
            is_whole = subject.kind is SubjectKind.TENANT
            answers = {"idempotency_keys": self._store.erase_answers(tenant, with_keys=is_whole)}
            if is_whole:
                answers["console_logins"] = self._store.delete_logins(tenant)
            erased = replace(
                erased,
                removed=add_counts(erased.removed, answers if is_whole else {}),
                cleared=add_counts(erased.cleared, {"agents": renamed, **({} if is_whole else answers)}),
            )
            event = self._store.add_event(_make_event(receipt, erased), is_sealed=True)
            return erased, event.id

        return self._store.transaction(tenant, remove)

    def _clear_agent(self, owner: Owner, needle: Needle) -> bool:
        """Remove the words from an agent's description."""
        agent = self._store.find_agent(owner)
        if agent is None:
            return False
        kept = replace(
            agent,
            name=needle.replaced(agent.name),
            system_prompt=needle.replaced(agent.system_prompt),
            model="" if needle.is_in(agent.model) else agent.model,
            colour="" if needle.is_in(agent.colour) else agent.colour,
            icon="" if needle.is_in(agent.icon) else agent.icon,
            tools=tuple(each for each in agent.tools if not needle.is_in(each)),
            knowledge_categories=tuple(each for each in agent.knowledge_categories if not needle.is_in(each)),
            updated_at=self._now(),
        )
        self._store.update_agent(kept)
        return True


def _split_steps(gone: Iterable[Trace]) -> list[list[Trace]]:
    """Divide rows into short transactions.

    Rows that are found through other rows come first and parent rows come last, so that an interrupted erasure finds
    the rest when it is run again. Rows added to a parent in the meantime are removed with it.
    """
    steps: list[list[Trace]] = []
    size = 0
    distinct = {(each.table, each.agent if each.table in OF_AGENTS else "", each.key): each for each in gone}
    for each in sorted(distinct.values(), key=lambda trace: REMOVAL_ORDER.get(trace.table, 1)):
        if not steps or len(steps[-1]) == STEP or size + each.size > STEP_CHARS:
            steps.append([])
            size = 0
        steps[-1].append(each)
        size += each.size
    return steps


def _add_counts(one: Erased, other: Erased) -> Erased:
    """Return `other` with the counts of `one` added."""
    return replace(
        other, removed=add_counts(one.removed, other.removed), cleared=add_counts(one.cleared, other.cleared)
    )


def _report_findings(receipt: Receipt, found: SubjectTraces) -> Receipt:
    """Return the receipt of a dry run."""
    every = list(iter_findings(found))
    removed: dict[str, int] = {}
    cleared: dict[str, int] = {}
    for each in every:
        counts = cleared if each.is_cleared else removed
        counts[each.table] = counts.get(each.table, 0) + 1
    return replace(
        receipt, removed=add_counts(removed, {}), cleared=add_counts(cleared, {}), found=tuple(every[:MAX_FOUND])
    )


def _describe_remains(tenant: str, subject: Subject, found: SubjectTraces) -> tuple[str, ...]:
    named = [
        f"The id of agent {each}, which contains the words; to remove the agent, erase agent:{each}."
        for each in found.named
    ]
    kept = [KEYS_STAY] if subject.kind is SubjectKind.TENANT else []
    return (AUDIT_STAYS, *kept, *named, HASHES_STAY, BACKUPS_STAY)


def _make_event(receipt: Receipt, erased: Erased) -> AuditEvent:
    removed, cleared = sum(erased.removed.values()), sum(erased.cleared.values())
    what = receipt.subject.partition(":")[0]
    meta: Json = {
        "subject_hash": receipt.subject_hash,
        "removed": dict(erased.removed),
        "cleared": dict(erased.cleared),
    }
    # Heads recorded before the log was resealed no longer match, so record where it begins.
    if erased.resealed_from is not None and erased.head_before is not None:
        meta |= {"resealed_from": erased.resealed_from, "head_before": asdict(erased.head_before)}
    return AuditEvent(
        tenant=receipt.tenant,
        at=receipt.at,
        action=ERASE_EVENT,
        message=f"Erasure of a {what} removed {removed:,} rows and took the words out of {cleared:,}.",
        meta=meta,
    )
