"""Search for everything that mentions a subject, before it is erased.

This module decides which rows are removed and which are only cleared: messages of a conversation and events of the
audit log keep their place and lose their text, all other rows are removed. Derived rows are removed too: summaries,
proposals, and records of prompts that showed the subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from recollect.errors import NotFound, StoreError
from recollect.model import ErasureFinding, Owner, Proposal, ProposalState, Subject, SubjectKind, Trace
from recollect.policy.erasure import ERASED, OWN_EVENTS, Needle, excerpt, foreign_words, has_name_line
from recollect.policy.history import OWN_AREAS
from recollect.policy.names import memory_id, memory_seq
from recollect.ports import Store
from recollect.services.walk import iter_owners

PAGE = 500
OF_AGENTS = ("memories", "memory_versions", "proposals", "context_calls", "details", "notes_file")
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
    undone: list[tuple[Owner, str]] = field(default_factory=list)  # proposals to undo first
    named: list[str] = field(default_factory=list)  # agent ids that contain the words and stay
    unread: list[str] = field(default_factory=list)  # details with an unreadable text

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to erase."""
        return not (self.gone or self.cleared or self.agents)


class FindTraces:
    """Service that searches a tenant's rows for a subject."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, tenant: str, subject: Subject) -> SubjectTraces:
        """Find the rows of a subject. Raises: NotFound when there is no such agent, session or memory."""
        if subject.kind is SubjectKind.TEXT:
            return self._find_mentions(tenant, Needle(subject.text))
        found = SubjectTraces()
        if subject.kind is SubjectKind.MEMORY:
            owner = Owner(tenant, subject.agent)
            memory = self._store.get_memory(owner, subject.id)
            found.gone.append(_memory_trace(owner, memory.id, memory.text))
        elif subject.kind is SubjectKind.SESSION:
            self._add_session(tenant, subject.id, found)
        else:
            self._add_owners(tenant, subject, found)
        self._add_events(tenant, subject, found)
        if subject.kind in (SubjectKind.MEMORY, SubjectKind.SESSION):
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
            found.cleared += [each for each in self._walk(tenant, "api_keys") if each.texts != ("",)]
        found.gone += self._walk(tenant, "agents", agent=subject.agent)

    def _add_session(self, tenant: str, session_id: str, found: SubjectTraces) -> None:
        found.gone += self._walk(tenant, "chat_sessions", session_id=session_id)
        for owner in iter_owners(self._store, tenant):
            for table in ("memories", "details", "context_calls"):
                found.gone += self._walk(tenant, table, agent=owner.agent, session_id=session_id)
        if not found.gone:
            raise NotFound("There is no such session.")

    def _add_events(self, tenant: str, subject: Subject, found: SubjectTraces) -> None:
        """Add events recorded by programs, which may contain any text; our own events contain only ids."""
        for event in self._walk(tenant, "audit_log"):
            if _is_own(event):
                continue
            is_meant = {
                SubjectKind.TENANT: True,
                SubjectKind.AGENT: event.agent == subject.agent,
                SubjectKind.SESSION: has_name_line(event.texts, [subject.id]),
            }.get(subject.kind, False)
            if is_meant and not _is_clear(event):
                found.cleared.append(event)

    def _find_mentions(self, tenant: str, needle: Needle) -> SubjectTraces:
        found = SubjectTraces()
        for owner in iter_owners(self._store, tenant):
            for table in OF_AGENTS:
                rows = self._walk(tenant, table, agent=owner.agent)
                found.gone += [
                    _shorten(each, needle) for each in rows if self._is_mentioned(owner, each, needle, found)
                ]
        for table in (*OF_TENANTS, *STAYS, "agents"):
            for each in self._walk(tenant, table):
                texts = [foreign_words(each.texts)] if _is_own(each) else each.texts
                if each.belongs_to != ERASE_EVENT and needle.is_in_any(texts):
                    self._add_trace(_shorten(each, needle), needle, found)
        self._add_emptied_documents(tenant, found)
        self._add_summaries(tenant, found)
        self._add_derived(tenant, found, is_derived=False)
        found.named += [each.id for each in self._walk(tenant, "agents") if needle.is_in(each.id)]
        return found

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
            before = piece[-reach:]

    def _add_trace(self, trace: Trace, needle: Needle, found: SubjectTraces) -> None:
        if trace.table == "agents":
            found.agents.append(trace)
        elif trace.table in STAYS:
            found.cleared.append(trace)
        elif trace.table == "chat_sessions" and not needle.is_in(trace.id):
            # Only its summary mentions the subject.
            found.cleared.append(trace)
        else:
            found.gone.append(trace)

    def _add_emptied_documents(self, tenant: str, found: SubjectTraces) -> None:
        """Add documents that lose all their passages."""
        gone = Counter(_document_id(each) for each in found.gone if each.table == "kb_chunks")
        if gone:
            every = Counter(_document_id(each) for each in self._walk(tenant, "kb_chunks"))
            known = {each.id for each in found.gone if each.table == "kb_documents"}
            for id in sorted(id for id, count in gone.items() if count == every[id] and id not in known):
                found.gone.append(Trace(table="kb_documents", key=(id,), texts=(id,)))

    def _add_summaries(self, tenant: str, found: SubjectTraces) -> None:
        """Add summaries of messages that are cleared; they are made again when needed."""
        known = {each.belongs_to for each in (*found.cleared, *found.gone) if each.table == "chat_sessions"}
        touched = {each.belongs_to for each in found.cleared if each.table == "chat_messages"}
        for id in sorted(touched - known):
            session = self._store.find_tenant_session(tenant, id)
            if session is not None and (session.summary or session.summarized_count):
                agent, texts = session.owner.agent, (session.summary,)
                found.cleared.append(Trace(table="chat_sessions", key=(id,), agent=agent, belongs_to=id, texts=texts))

    def _add_derived(self, tenant: str, found: SubjectTraces, *, is_derived: bool) -> None:
        """Add proposals that fold removed memories, prompts that showed them and, with `is_derived`, their results."""
        for owner in iter_owners(self._store, tenant):
            gone = {memory_id(int(each.key[0])) for each in _select(owner, found.gone, "memories")}
            known = {each.key for each in _select(owner, found.gone, "proposals")}
            for proposal in self._iter_proposals(owner) if gone else ():
                if gone.isdisjoint(fold.id for fold in proposal.folds):
                    continue
                if is_derived and proposal.state is ProposalState.APPLIED and proposal.is_new:
                    gone |= self._add_result(owner, proposal, found)
                seq = int(proposal.id.removeprefix("p-"))
                if (seq,) not in known:
                    found.gone.append(Trace(table="proposals", key=(seq,), agent=owner.agent, texts=(proposal.text,)))
            self._add_prompts(owner, gone, found)

    def _add_result(self, owner: Owner, proposal: Proposal, found: SubjectTraces) -> set[str]:
        found.undone.append((owner, proposal.id))
        made = self._store.find_memories(owner, [memory_seq(proposal.memory_id or "") or 0])
        found.gone += [_memory_trace(owner, memory.id, memory.text) for memory in made.values()]
        return {memory.id for memory in made.values()}

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

    def _iter_proposals(self, owner: Owner) -> Iterator[Proposal]:
        before = None
        while page := self._store.list_proposals(owner, before=before, limit=PAGE):
            yield from page
            before = int(page[-1].id.removeprefix("p-"))

    def _walk(self, tenant: str, table: str, *, agent: str = "", session_id: str = "") -> Iterator[Trace]:
        after: tuple[str | int, ...] = ()
        while page := self._store.list_traces(
            tenant, table, agent=agent, session_id=session_id, after=after, limit=PAGE
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


def _memory_trace(owner: Owner, id: str, text: str) -> Trace:
    return Trace(table="memories", key=(memory_seq(id) or 0,), agent=owner.agent, texts=(text,))


def _document_id(passage: Trace) -> str:
    return passage.belongs_to.rpartition("#")[0]


def _is_own(trace: Trace) -> bool:
    """Return True for an event of our own, which contains only ids and our own words."""
    area = trace.belongs_to.partition(".")[0]
    return trace.table == "audit_log" and (trace.belongs_to in OWN_EVENTS or area in OWN_AREAS)


def _is_clear(event: Trace) -> bool:
    return event.texts[0] == ERASED and all(text in ("", "{}") for text in event.texts[1:])
