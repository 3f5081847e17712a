"""Erasure of a subject, with a receipt.

Everything that mentions the subject is found, then removed in short transactions, then searched for again; rows written
in the meantime are removed in another round. An interrupted erasure can be run again. At the end, the bytes are removed
from files, logs and caches. The audit log records the number of rows per table and a hash of the subject, and nothing
of its content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wellkept.access.keys import CACHE_TIME
from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.memory.changes import Changes
from wellkept.model import AuditEvent, Erased, Json, Owner, Receipt, Subject, SubjectKind, Trace
from wellkept.text_cache import clear_text_caches
from wellkept.upkeep.rules_erasure import Needle, add_counts, parse_subject, receipt_hash, subject_hash, text_subject
from wellkept.upkeep.traces import ERASE_EVENT, OF_AGENTS, FindTraces, SubjectTraces, iter_findings
from wellkept.upkeep.walk import iter_owners

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

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
        self._traces = FindTraces(store)

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
        found, at = self._traces(tenant, subject, with_agents=with_agents is not False), self._now()
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
            having = [
                each for each in iter_owners(self._store, tenant) if seq in self._store.find_memories(each, [seq])
            ]
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
            try:
                found = self._traces(receipt.tenant, subject, with_agents=with_agents)
            # The subject no longer exists, as expected.
            except NotFound:
                found = SubjectTraces()
            if found.is_empty:
                break
        remnants = list(receipt.remnants) + ([] if found.is_empty else [STILL_COMING])
        # What waited for a vector is gone.
        self._store.settle_queue(receipt.tenant, self._store.list_queue(receipt.tenant))
        swept = self._store.sweep_contents(receipt.tenant, stored_before=EVER, unknown_too=True)
        for forget in self._forget:
            forget(receipt.tenant)
        self._store.forget_cached(receipt.tenant)
        clear_text_caches()
        remnants += self._store.scrub(compact=compact)
        removed = add_counts(receipt.removed, {"detail_contents": swept})
        return replace(receipt, removed=removed, remnants=tuple(remnants))

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
