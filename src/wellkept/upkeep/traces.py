"""Search for everything that mentions a subject, before it is erased.

This module decides which rows are removed and which are only cleared: messages of a conversation and events of the
audit log keep their place and lose their text, all other rows are removed. Derived rows are removed too: summaries,
changes, and records of prompts that showed the subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from wellkept.errors import NotFound, StoreError
from wellkept.history.rules_history import OWN_AREAS
from wellkept.language.names import change_seq, memory_id, memory_seq
from wellkept.model import (
    ACTOR,
    NO_USER,
    Change,
    ChangeAction,
    ChangeCause,
    ChangeState,
    ErasureFinding,
    Memory,
    Owner,
    Subject,
    SubjectKind,
    Trace,
)
from wellkept.prompt.rules_escaping import strip_invisible
from wellkept.upkeep.rules_erasure import (
    ERASED,
    OWN_EVENTS,
    OWN_WORDS,
    Needle,
    excerpt,
    foreign_words,
    has_name_line,
    mark_cleared,
    mark_row,
    mark_subject,
)
from wellkept.upkeep.walk import iter_owners

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

PAGE = 500
OF_AGENTS = ("memories", "memory_versions", "changes", "context_calls", "details", "notes_file")
OF_USERS = ("memories", "memory_versions", "changes", "context_calls", "details")
OF_TENANTS = ("chat_sessions", "kb_documents", "workflows", "workflow_steps", "secret_allowances", "kb_chunks")
STAYS = frozenset(["chat_messages", "audit_log", "api_keys"])
"""Tables with rows that keep their place and lose their text."""


ERASE_EVENT = "erase.run"


@dataclass(slots=True)
class SubjectTraces:
    """Rows that an erasure removes or clears."""

    gone: list[Trace] = field(default_factory=list)
    cleared: list[Trace] = field(default_factory=list)
    agents: list[Trace] = field(default_factory=list)  # agents with a description that mentions the subject
    undone: list[tuple[Owner, str]] = field(default_factory=list)  # changes to undo first
    whole: list[str] = field(default_factory=list)  # agents that go because their ids are made from the words
    named: list[str] = field(default_factory=list)  # agent ids that contain the words and stay
    marks: list[str] = field(default_factory=list)  # of rows that go with others
    unread: list[str] = field(default_factory=list)  # details with an unreadable text

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


class FindTraces:
    """Service that searches a tenant's rows for a subject."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def __call__(self, tenant: str, subject: Subject, *, with_agents: bool = True) -> SubjectTraces:
        """Find the rows of a subject; of a text, also `with_agents` whose ids are made from it.

        Raises: NotFound when there is no such agent, session or memory.
        """
        if subject.kind is SubjectKind.TEXT:
            return self._find_mentions(tenant, Needle(subject.text), with_agents=with_agents)
        found = SubjectTraces()
        if subject.kind is SubjectKind.MEMORY:
            owner = Owner(tenant, subject.agent)
            memory = self._store.get_memory(owner, subject.id)
            found.gone.append(_memory_trace(owner, memory))
            versions = self._store.list_versions(owner, memory.id)
            found.marks += [mark_row("memory_versions", each.text, _stamp(each.replaced_at)) for each in versions]
        elif subject.kind is SubjectKind.SESSION:
            self._add_session(tenant, subject.id, found)
            found.marks.append(mark_subject(SubjectKind.SESSION, subject.id))
        elif subject.kind is SubjectKind.USER:
            self._add_user(tenant, subject.id, found)
            found.marks.append(mark_subject(SubjectKind.USER, subject.id))
        else:
            self._add_owners(tenant, subject, found)
        self._add_events(tenant, subject, found)
        if subject.kind in (SubjectKind.MEMORY, SubjectKind.SESSION, SubjectKind.USER):
            self._add_derived(tenant, found, is_derived=True)
        return found

    def _add_owners(self, tenant: str, subject: Subject, found: SubjectTraces) -> None:
        """Add one agent with everything it owns, or the whole tenant."""
        if subject.kind is SubjectKind.AGENT:
            self._store.get_agent(Owner(tenant, subject.agent))
        for owner in iter_owners(self._store, tenant):
            if subject.agent in ("", owner.agent):
                for table in OF_AGENTS:
                    found.gone += map(_shorten, self._walk(tenant, table, agent=owner.agent))
        for table in OF_TENANTS if subject.kind is SubjectKind.TENANT else ("chat_sessions", "workflow_steps"):
            rows = self._walk(tenant, table, agent=subject.agent)
            found.gone += [_shorten(each) for each in rows if subject.agent in ("", each.agent)]
        if subject.kind is SubjectKind.TENANT:
            found.cleared += [each for each in self._walk(tenant, "api_keys") if each.texts[0]]
        found.gone += self._walk(tenant, "agents", agent=subject.agent)

    def _add_session(self, tenant: str, session_id: str, found: SubjectTraces) -> None:
        found.gone += map(_shorten, self._walk(tenant, "chat_sessions", session_id=session_id))
        for owner in iter_owners(self._store, tenant):
            for table in ("memories", "details", "context_calls"):
                rows = self._walk(tenant, table, agent=owner.agent, session_id=session_id)
                found.gone += map(_shorten, rows)
        if not found.gone:
            raise NotFound("There is no such session.")

    def _add_user(self, tenant: str, user: str, found: SubjectTraces) -> None:
        """Add the records of a user of any agent, what its sessions hold that names no user, and its keys."""
        sessions = [*self._walk(tenant, "chat_sessions", user=user)]
        found.gone += map(_shorten, sessions)
        for owner in iter_owners(self._store, tenant):
            for table in OF_USERS:
                found.gone += map(_shorten, self._walk(tenant, table, agent=owner.agent, user=user))
            for session in (each for each in sessions if each.agent == owner.agent):
                for table in ("memories", "details", "context_calls"):
                    rows = self._walk(tenant, table, agent=owner.agent, session_id=session.id, user=NO_USER)
                    found.gone += map(_shorten, rows)
        keys = [key for key in self._store.list_keys(tenant) if key.user == user]
        # A key stays limited: to a user that does not exist.
        found.cleared += [Trace(table="api_keys", key=(key.id,), texts=(key.name,), has_ids=True) for key in keys]
        if not found.gone and not found.cleared:
            raise NotFound("There is no such user.")

    def _add_events(self, tenant: str, subject: Subject, found: SubjectTraces) -> None:
        """Add events recorded by programs, which may contain any text; our own events contain only ids."""
        names = {subject.id, *(each.id for each in found.gone if each.table == "chat_sessions")}
        for event in self._walk(tenant, "audit_log"):
            # Ids of sessions may name the user.
            if subject.kind is SubjectKind.USER and not _split_ids(event.texts).isdisjoint(names):
                found.cleared.append(replace(_shorten(event), has_ids=False))
            if _is_own(event):
                continue
            is_meant = {
                SubjectKind.TENANT: True,
                SubjectKind.AGENT: event.agent == subject.agent,
                SubjectKind.SESSION: has_name_line(event.texts, [subject.id]),
            }.get(subject.kind, False)
            if is_meant and not _is_clear(event):
                found.cleared.append(_shorten(event))

    def _find_mentions(self, tenant: str, needle: Needle, *, with_agents: bool) -> SubjectTraces:
        found, derived = SubjectTraces(), set[str]()
        agents = [each.id for each in self._walk(tenant, "agents")]
        # An agent whose id is made from the words goes with all it owns: the id is in all of its rows.
        named = {each for each in agents if with_agents and needle.is_word_in(each)}
        found.whole += sorted(named)
        found.named += [each for each in agents if each not in named and needle.is_in(each)]
        for agent in sorted(named):
            self._add_owners(tenant, Subject(kind=SubjectKind.AGENT, agent=agent), found)
        for owner in iter_owners(self._store, tenant):
            for table in OF_AGENTS if owner.agent not in named else ():
                for each in self._walk(tenant, table, agent=owner.agent):
                    if self._is_mentioned(owner, each, needle, found):
                        found.gone.append(_shorten(each, needle))
                        derived |= _find_derived_id(each, needle)
        for table in (*OF_TENANTS, "chat_messages", "api_keys", "agents"):
            for each in self._walk(tenant, table):
                # An agent that was deleted before is named by steps only.
                is_by = with_agents and each.table == "workflow_steps" and needle.is_word_in(each.agent)
                if each.agent not in named and (is_by or needle.is_in_any(each.texts)):
                    self._add_trace(each, needle, found)
                    derived |= _find_derived_id(each, needle)
        self._add_mentioning_events(tenant, needle, derived, found, with_agents=with_agents)
        self._add_emptied_documents(tenant, found)
        self._add_summaries(tenant, found)
        self._add_derived(tenant, found, is_derived=False)
        return found

    def _add_mentioning_events(
        self, tenant: str, needle: Needle, derived: Collection[str], found: SubjectTraces, *, with_agents: bool
    ) -> None:
        """Add events that mention the words, an id that is made from them, or an agent that goes."""
        for event in self._walk(tenant, "audit_log"):
            texts, is_agent = _searched_texts(event), with_agents and needle.is_word_in(event.agent)
            is_mentioned = needle.is_in_any(texts) or bool(_split_ids(texts).intersection(derived))
            # Our own words may be part of a name; then only the whole name counts.
            if not is_mentioned and _is_own(event) and not needle.has_own_words_only(OWN_WORDS):
                is_mentioned = event.belongs_to != ERASE_EVENT and any(map(needle.is_word_in, event.texts))
            has_action = not _is_own(event) and needle.is_in(event.belongs_to)
            if is_agent or is_mentioned or has_action:
                found.cleared.append(replace(_shorten(event, needle), has_ids=is_agent, has_action=has_action))

    def _is_mentioned(self, owner: Owner, trace: Trace, needle: Needle, found: SubjectTraces) -> bool:
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
            found.unread.append(f"{owner.agent}/{key}")
            return False

    def _pieces(self, owner: Owner, key: str, reach: int) -> Iterator[str]:
        """Yield the text of a detail in pieces, each with the end of the previous one, so that no match is split."""
        content, before = self._store.open_content(owner, key), ""
        for position in range(len(content.newlines)):
            piece = before + content.chunk(position)
            yield piece
            # Invisible characters do not count, or they could push a mention out of reach.
            before = strip_invisible(piece)[-reach:]

    def _add_trace(self, trace: Trace, needle: Needle, found: SubjectTraces) -> None:
        short = _shorten(trace, needle)
        if trace.table == "agents":
            found.agents.append(short)
        elif trace.table in STAYS:
            # The limits of a key, behind its name, are ids.
            found.cleared.append(
                replace(short, has_ids=trace.table == "api_keys" and needle.is_in_any(trace.texts[1:]))
            )
        elif trace.table == "chat_sessions" and not needle.is_in_any((trace.id, trace.texts[2])):
            # Neither its id nor its user: only its summary or metadata mention the subject.
            found.cleared.append(short)
        else:
            found.gone.append(short)

    def _add_emptied_documents(self, tenant: str, found: SubjectTraces) -> None:
        """Add documents that lose all their passages."""
        gone = Counter(_document_id(each) for each in found.gone if each.table == "kb_chunks")
        if gone:
            every = Counter(_document_id(each) for each in self._walk(tenant, "kb_chunks"))
            known = {each.id for each in found.gone if each.table == "kb_documents"}
            emptied = {id for id, count in gone.items() if count == every[id]} - known
            rows = self._walk(tenant, "kb_documents") if emptied else ()
            found.gone += [_shorten(each) for each in rows if each.id in emptied]

    def _add_summaries(self, tenant: str, found: SubjectTraces) -> None:
        """Add summaries of messages that are cleared; they are made again when needed."""
        known = {each.belongs_to for each in (*found.cleared, *found.gone) if each.table == "chat_sessions"}
        touched = {each.belongs_to for each in found.cleared if each.table == "chat_messages"}
        for id in sorted(touched - known):
            session = self._store.find_tenant_session(tenant, id)
            if session is not None and (session.summary or session.summarized_count):
                found.cleared += map(_shorten, self._walk(tenant, "chat_sessions", session_id=id))

    def _add_derived(self, tenant: str, found: SubjectTraces, *, is_derived: bool) -> None:
        """Add changes made from removed memories, prompts that showed these and, with `is_derived`, what was made."""
        for owner in iter_owners(self._store, tenant):
            gone = {memory_id(int(each.key[0])) for each in _select(owner, found.gone, "memories")}
            if is_derived and gone:
                gone |= self._add_facts(owner, gone, found)
            known = {each.key for each in _select(owner, found.gone, "changes")}
            for change in self._iter_changes(owner) if gone else ():
                made = [each.id for each in change.memories if each.action is ChangeAction.ADD and each.new_version]
                is_from = change.cause is ChangeCause.CONSOLIDATION and (change.text or made)
                if not is_from or gone.isdisjoint(each.id for each in change.memories if each.version is not None):
                    continue
                if is_derived and change.state is ChangeState.APPLIED:
                    found.undone.append((owner, change.id))
                    results = self._store.find_memories(owner, [memory_seq(id) or 0 for id in made]).values()
                    found.gone += [_memory_trace(owner, memory) for memory in results]
                    gone |= {memory.id for memory in results}
                key, at = (change_seq(change.id) or 0,), _stamp(change.created_at)
                if key not in known:
                    mark = mark_row("changes", change.text, at)
                    found.gone.append(
                        Trace(table="changes", key=key, agent=owner.agent, texts=(change.text,), mark=mark)
                    )
            self._add_prompts(owner, gone, found)

    def _add_facts(self, owner: Owner, turns: set[str], found: SubjectTraces) -> set[str]:
        """Add the facts that were read out of these turns; one that another turn only repeats stays with it."""
        facts = [
            each
            for each in self._walk(owner.tenant, "memories", agent=owner.agent)
            # The last text has the sources, one in a line; the first is the turn that the fact was read from.
            if each.texts[-1].partition("\n")[0] in turns and memory_id(int(each.key[0])) not in turns
        ]
        found.gone += map(_shorten, facts)
        return {memory_id(int(each.key[0])) for each in facts}

    def _add_prompts(self, owner: Owner, memories: set[str], found: SubjectTraces) -> None:
        names = memories | {each.id for each in _select(owner, found.gone, "details")}
        names |= {each.belongs_to for each in found.gone if each.table == "kb_chunks"}
        names |= {each.id for each in found.gone if each.table in ("workflow_steps", "kb_documents")}
        touched = {"chat_messages", "chat_sessions"}
        sessions = {each.belongs_to for each in (*found.cleared, *found.gone) if each.table in touched}
        known = {each.key for each in _select(owner, found.gone, "context_calls")}
        if names or sessions:
            for call in self._walk(owner.tenant, "context_calls", agent=owner.agent):
                is_shown = call.belongs_to in sessions or has_name_line(call.texts, names)
                if is_shown and call.key not in known:
                    found.gone.append(call)

    def _iter_changes(self, owner: Owner) -> Iterator[Change]:
        before = None
        while page := self._store.list_changes(owner, before=before, limit=PAGE):
            yield from page
            before = change_seq(page[-1].id)

    def _walk(
        self, tenant: str, table: str, *, agent: str = "", session_id: str = "", user: str | None = None
    ) -> Iterator[Trace]:
        after: tuple[str | int, ...] = ()
        while page := self._store.list_traces(
            tenant, table, agent=agent, session_id=session_id, user=user, after=after, limit=PAGE
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
