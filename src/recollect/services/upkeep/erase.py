"""Erasing a subject, so that nothing of it is left, and a receipt for it.

First everything is found, then it is removed in short transactions, then it is looked for again: what was written in
the meantime goes in another round. An erasure that was interrupted is simply run again. At the end the bytes go, from
files, logs and memory. The audit log tells that it was done, how many rows of which table it took and a hash of the
subject, and nothing of what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Protocol

from recollect.errors import Conflict, Invalid, NotFound
from recollect.model import AuditEvent, Erased, Json, Owner, Receipt, Subject, SubjectKind, Trace
from recollect.policy.erasure import Needle, added, parsed_subject, receipt_hash, subject_hash, text_subject
from recollect.policy.names import memory_seq
from recollect.ports import Clock, Store
from recollect.services.memories.consolidate import Consolidate
from recollect.services.upkeep.traces import ERASE_EVENT, OF_AGENTS, Found, Traces, findings
from recollect.services.walk import owners

ROUNDS = 5
"""How often it is looked again for what was written meanwhile."""

STEP = 500
"""Rows removed in one transaction: others write in between."""

STEP_CHARS = 1_000_000
"""How much text these rows may hold, apart from a single row that holds more."""

TURNS = {"proposals": 0, "context_calls": 0}
TURNS |= {"memories": 2, "chat_sessions": 2, "kb_documents": 2, "workflows": 2, "agents": 3}
"""In which turn a table's rows go; those of all other tables in turn 1."""

CLEARED = ("chat_sessions", "chat_messages", "api_keys")
"""Rows that lose their words step by step. Sessions first: their summaries are found by what the messages say."""

MAX_FOUND = 1_000
"""How much of a dry run is told; the counts are of all."""

EVER = datetime(9999, 1, 1, tzinfo=UTC)

AUDIT_STAYS = "The audit log, whose events name ids and times and hold no text."
KEYS_STAY = "The tenant's keys, without their names, and its number of ids given; revoke the keys to close it."
BACKUPS_STAY = "Copies made before: backups, exports, file system snapshots, and what prompts were sent elsewhere."
STILL_COMING = "Something that mentions the subject was written again and again meanwhile; erase once more."


class Forgets(Protocol):
    """Something that holds texts of a tenant in memory."""

    def forget(self, tenant: str) -> None: ...


class Flushes(Protocol):
    """Something that writes down a little later what it was told."""

    def flush(self, tenant: str) -> None: ...


class Erase:
    """Erases, or tells what it would erase."""

    def __init__(
        self,
        store: Store,
        consolidate: Consolidate,
        now: Clock,
        *,
        waiting: Sequence[Flushes],
        caches: Sequence[Forgets],
    ) -> None:
        self._store = store
        self._consolidate = consolidate
        self._now = now
        self._waiting = waiting  # to be written, and would come back
        self._caches = caches
        self._traces = Traces(store)

    def __call__(self, tenant: str, said: str, *, dry_run: bool = False, compact: bool | None = None) -> Receipt:
        """Raises: Invalid; NotFound when there is no such agent, session or memory."""
        for each in self._waiting:
            each.flush(tenant)
        subject = parsed_subject(said, tenant) or self._resolved(tenant, said)
        found, at = self._traces(tenant, subject), self._now()
        receipt = Receipt(
            tenant=tenant,
            subject=subject.name,
            subject_hash=subject_hash(tenant, subject),
            at=at,
            is_dry_run=dry_run,
            removed={},
            cleared={},
            remains=_remains(tenant, subject, found),
            remnants=tuple(
                f"The text of detail {each} could not be read, and so not be searched." for each in found.unread
            ),
        )
        done = _told(receipt, found) if dry_run else self._erased(receipt, subject, found, compact)
        return replace(done, hash=receipt_hash(done))

    def _resolved(self, tenant: str, said: str) -> Subject:
        """What words without a kind mean: the one thing that has them as its id, or else whatever mentions them.

        Raises: Invalid.
        """
        name = said.strip()
        seq = memory_seq(name)
        if seq is not None:
            having = [each for each in owners(self._store, tenant) if seq in self._store.find_memories(each, [seq])]
            if len(having) > 1:
                raise Invalid(f"{len(having)} agents have a memory {name}; say whose: memory:{having[0].agent}/{name}.")
            if having:
                return Subject(kind=SubjectKind.MEMORY, agent=having[0].agent, id=name)
        if self._store.find_agent(Owner(tenant, name)) is not None:
            return Subject(kind=SubjectKind.AGENT, agent=name)
        if self._store.find_tenant_session(tenant, name) is not None:
            return Subject(kind=SubjectKind.SESSION, id=name)
        return text_subject(said)

    def _erased(self, receipt: Receipt, subject: Subject, found: Found, compact: bool | None) -> Receipt:
        for owner, id in found.undone:
            self._undo(owner, id)
        for _ in range(ROUNDS):
            erased, event = self._removed(receipt, subject, found)
            receipt = replace(
                receipt,
                removed=added(receipt.removed, erased.removed),
                cleared=added(receipt.cleared, erased.cleared),
                events=(*receipt.events, event),
            )
            try:
                found = self._traces(receipt.tenant, subject)
            except NotFound:  # as it should be
                found = Found()
            if found.is_empty:
                break
        remnants = list(receipt.remnants) + ([] if found.is_empty else [STILL_COMING])
        swept = self._store.sweep_contents(receipt.tenant, stored_before=EVER, unknown_too=True)
        for cache in self._caches:
            cache.forget(receipt.tenant)
        self._store.forget_cached(receipt.tenant)
        remnants += self._store.scrub(compact=compact)
        removed = added(receipt.removed, {"detail_contents": swept})
        return replace(receipt, removed=removed, remnants=tuple(remnants))

    def _undo(self, owner: Owner, id: str) -> None:
        """Let what a proposal took in count again, apart from what is erased. What it made goes in any case."""
        try:
            self._consolidate.undo(owner, id)
        except (Conflict, NotFound):
            return

    def _removed(self, receipt: Receipt, subject: Subject, found: Found) -> tuple[Erased, int]:
        tenant, needle = receipt.tenant, Needle(subject.text)
        *steps, gone = _steps([*self._store.list_hanging(tenant, found.gone), *found.gone]) or [[]]
        before = Erased(removed={}, cleared={})
        for step in steps:
            before = _sum(before, self._store.erase_traces(tenant, step, ()))
        for table in CLEARED:
            for step in _steps(each for each in found.cleared if each.table == table):
                before = _sum(before, self._store.erase_traces(tenant, (), step))
        events = [each for each in found.cleared if each.table not in CLEARED]
        sealing = self._store.plan_sealing(tenant, events)

        def remove() -> tuple[Erased, int]:
            erased = _sum(before, self._store.erase_traces(tenant, gone, events, sealing=sealing))
            renamed = sum(self._redescribed(Owner(tenant, each.agent), needle) for each in found.agents)
            # An answer can quote anything, in JSON inside of JSON, so all of them go; the keys still guard against
            # retries, unless nothing is left that a retry could double.
            is_whole = subject.kind is SubjectKind.TENANT
            answers = {"idempotency_keys": self._store.erase_answers(tenant, with_keys=is_whole)}
            erased = replace(
                erased,
                removed=added(erased.removed, answers if is_whole else {}),
                cleared=added(erased.cleared, {"agents": renamed, **({} if is_whole else answers)}),
            )
            event = self._store.add_event(_event(receipt, erased))
            return erased, event.id

        return self._store.transaction(tenant, remove)

    def _redescribed(self, owner: Owner, needle: Needle) -> bool:
        """An agent goes on without the words in its own description."""
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


def _steps(gone: Iterable[Trace]) -> list[list[Trace]]:
    """Divide rows into transactions that keep other writers waiting only shortly.

    What is found by other rows goes before them, and rows that others hang on go last, so that an interrupted erasure
    finds the rest when it is run again; whatever is added to one of those meanwhile goes with it.
    """
    steps: list[list[Trace]] = []
    size = 0
    distinct = {(each.table, each.agent if each.table in OF_AGENTS else "", each.key): each for each in gone}
    for each in sorted(distinct.values(), key=lambda trace: TURNS.get(trace.table, 1)):
        if not steps or len(steps[-1]) == STEP or size + each.size > STEP_CHARS:
            steps.append([])
            size = 0
        steps[-1].append(each)
        size += each.size
    return steps


def _sum(one: Erased, other: Erased) -> Erased:
    """`other` with the counts of `one` added."""
    return replace(other, removed=added(one.removed, other.removed), cleared=added(one.cleared, other.cleared))


def _told(receipt: Receipt, found: Found) -> Receipt:
    """The receipt of an erasure that was not done."""
    every = list(findings(found))
    removed: dict[str, int] = {}
    cleared: dict[str, int] = {}
    for each in every:
        counts = cleared if each.is_cleared else removed
        counts[each.table] = counts.get(each.table, 0) + 1
    return replace(receipt, removed=added(removed, {}), cleared=added(cleared, {}), found=tuple(every[:MAX_FOUND]))


def _remains(tenant: str, subject: Subject, found: Found) -> tuple[str, ...]:
    named = [
        f"The id of agent {each}, which holds the words; to remove the agent, erase agent:{each}."
        for each in found.named
    ]
    kept = [KEYS_STAY] if subject.kind is SubjectKind.TENANT else []
    return (AUDIT_STAYS, *kept, *named, BACKUPS_STAY)


def _event(receipt: Receipt, erased: Erased) -> AuditEvent:
    removed, cleared = sum(erased.removed.values()), sum(erased.cleared.values())
    what = receipt.subject.partition(":")[0]
    meta: Json = {
        "subject_hash": receipt.subject_hash,
        "removed": dict(erased.removed),
        "cleared": dict(erased.cleared),
    }
    if erased.resealed_from is not None and erased.head_before is not None:  # heads recorded earlier no longer fit
        meta |= {"resealed_from": erased.resealed_from, "head_before": asdict(erased.head_before)}
    return AuditEvent(
        tenant=receipt.tenant,
        at=receipt.at,
        action=ERASE_EVENT,
        message=f"Erasure of a {what} removed {removed:,} rows and took the words out of {cleared:,}.",
        meta=meta,
    )
