"""Rows of the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

from wellkept.caller import current_caller
from wellkept.deadline import check_deadline
from wellkept.errors import Conflict, ReadOnly
from wellkept.history.rules_history import (
    MAX_SEARCHED,
    START,
    event_hash,
    find_seal_problem,
    history_terms,
    is_foreign,
    is_keyed,
    is_plain_json,
    seal_event,
)
from wellkept.language.text import fold, like_literal
from wellkept.memory.rules_filters import Condition
from wellkept.model import ACTOR, AuditEvent, AuditHead, AuditReport, HeadCheck, Match, Trace
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Engine, Row, Unit
from wellkept.store.search.words import HistoryShelf, WordSearchRows, encode_words
from wellkept.store.tables.rows import (
    BEHIND_ALL,
    MAX_PATTERN_BYTES,
    event_from,
    event_values,
    json_text,
    note_change,
    readable_event,
)
from wellkept.store.waiting_events import EventSealer, EventTimes, add_waiting, find_waiting_problem, seal_waiting
from wellkept.upkeep.rules_erasure import ERASED, ERASED_ACTION

SHELF = "audit"
MAINTENANCE = "maintenance."
"""Beginning of the actions of maintenance."""

EVENTS_OF = "events"
"""Key of the events that a transaction writes at its end, in `Unit.memo`."""

T = TypeVar("T")
PAGE = 1000
"""Events read by one statement."""
MAX_BROKEN = 20
"""Limit on the broken event ids listed in a report."""

CUT = "Events are missing from the end of the log."
NOTHING_KEYED = (
    "No event is keyed although audit_key is set. If you have just set it, the next event starts the keyed part; "
    "otherwise the log was rewritten."
)
NO_KEY = "The audit log of this tenant is keyed. Set audit_key to its original key to write."
OTHER_KEY = "The audit log of this tenant is keyed with another audit_key. Set audit_key to its original key to write."


class AuditRows(WordSearchRows):
    """Audit events in order, linked by a hash chain.

    The tenant's shelf row holds the head of the chain. Who adds to the chain locks it until the commit. Where several
    write at a time, an event of a `transaction` waits to be added (see `waiting_events`), so that they do not queue.
    """

    audit_key = ""
    """Key of the event hashes; set by `open_store`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._sealer = EventSealer(self._seal_free)
        self._times = EventTimes()

    def add_event(self, event: AuditEvent, *, is_sealed: bool = False) -> AuditEvent:
        """Add an event; return it with its number, its hash and the current caller as actor.

        Within a `transaction` it may get its number and hash only after the commit, unless `is_sealed`.

        Raises: ReadOnly when the log was written with another audit key.
        """
        if actor := current_caller().actor:
            event = replace(event, meta={**event.meta, ACTOR: actor})
        # Hash the meta as it will be read back: JSON turns numeric keys into text, which changes their order.
        if not is_plain_json(event.meta):
            event = replace(event, meta=json.loads(json_text(event.meta)))
        unit = self._unit(event.tenant)
        if unit is None or is_sealed or self._engine.has_single_writer:
            return self.write(event.tenant, lambda unit: self._append(unit, event))
        _note_change(unit, event)
        unit.memo.setdefault(EVENTS_OF, []).append(event)
        return event

    def _append(self, unit: Unit, event: AuditEvent) -> AuditEvent:
        """Add an event to the chain, after those that wait."""
        _note_change(unit, event)
        head = unit.one("hold_audit_head", tenant=event.tenant)
        if head is None:
            unit.put("add_tenant", tenant=event.tenant, now=event.at)
            unit.put("add_shelf", tenant=event.tenant, shelf=SHELF)
            head = unit.one("hold_audit_head", tenant=event.tenant)
        assert head is not None
        refuse_foreign(head[1], self.audit_key)
        is_done = self._engine.has_single_writer
        while not is_done:
            head, is_done = seal_waiting(unit, (head[0], head[1], head[2]), self.audit_key)
        sealed = seal_event(event, head[1], self.audit_key, id=head[0] + 1)
        unit.put("add_event", **event_values(sealed))
        unit.put("set_audit_head", tenant=event.tenant, last_id=sealed.id, last_hash=sealed.hash)
        return sealed

    def _finish(self, unit: Unit) -> Sequence[Callable[[], None]]:
        notes = super()._finish(unit)
        if not (events := unit.memo.get(EVENTS_OF)):
            return notes
        add_waiting(unit, events, self.audit_key, self._times)
        return (*notes, partial(self._sealer.wake, unit.tenant))

    def _seal_free(self, tenant: str) -> bool:
        """Add waiting events to the chain, unless somebody else does so now; return False if some still wait."""
        return self.write(tenant, lambda unit: self._seal_batch(unit, "hold_free_audit_head"))

    def _seal_batch(self, unit: Unit, hold: str) -> bool:
        head = unit.one(hold, tenant=unit.tenant)
        if head is None:
            if read_head(unit) != AuditHead():
                return False
            first = unit.one("list_waiting_events", tenant=unit.tenant, limit=1)
            if first is None:
                return True
            unit.put("add_tenant", tenant=unit.tenant, now=first[4])
            unit.put("add_shelf", tenant=unit.tenant, shelf=SHELF)
            head = unit.one("hold_audit_head", tenant=unit.tenant)
        assert head is not None
        return seal_waiting(unit, (head[0], head[1], head[2]), self.audit_key)[1]

    def _read_sealed(self, tenant: str, work: Callable[[Unit], T]) -> T:
        """Run `work` on a snapshot whose log has all events committed before, if this process can add them."""
        if self._engine.has_single_writer or self._unit(tenant) is not None or self._is_together(tenant):
            return self.read(tenant, work)

        def read(unit: Unit) -> tuple[T] | None:
            return None if unit.one("has_waiting_events", tenant=tenant) else (work(unit),)

        if (done := self.read(tenant, read)) is not None:
            return done[0]
        self._seal_all(tenant)
        # What was committed meanwhile may wait; others may write all the time.
        return self.read(tenant, work)

    def _seal_all(self, tenant: str) -> None:
        """Add all waiting events to the chain, if this process can."""
        # A standby cannot be written, another key may be needed, the head may be wrong: then the log is read as it is.
        with suppress(ReadOnly, Conflict):
            while not self.write(tenant, lambda unit: self._seal_batch(unit, "hold_audit_head")):
                check_deadline()

    def close(self) -> None:
        """Release the database. Further calls do nothing."""
        self._sealer.close()
        super().close()

    def list_events(
        self,
        tenant: str,
        *,
        needle: str = "",
        where: Condition | None = None,
        agents: Collection[str] = (),
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[AuditEvent]:
        """List events, newest first.

        `needle` matches anywhere in the message, ignoring case; `where` is a condition on action, agent, actor and at;
        `agents` limits the listing to these agents. Damaged events are marked.
        """
        pattern = f"%{like_literal(fold(needle))}%"
        if len(pattern.encode()) > MAX_PATTERN_BYTES:
            return []
        name, values = (
            "list_events_of_agents" if agents else "list_events",
            {
                "tenant": tenant,
                "needle": pattern,
                "before": BEHIND_ALL if before is None else before,
                "limit": limit,
                "names": self._engine.texts(sorted(agents)),
            },
        )
        clause = compile_filter(where, self._engine.name)
        rows = self._read_sealed(tenant, lambda unit: unit.all(name, clause, **values))
        return [readable_event(row) for row in rows]

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        """Return the existing ones of these events, by number."""
        if not ids:
            return {}
        numbers = self._engine.numbers(ids)
        rows = self._read_sealed(tenant, lambda unit: unit.all("find_events", tenant=tenant, ids=numbers))
        return {row[1]: readable_event(row) for row in rows}

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find events that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        The score is the share of the query found in the message, 0 to 1, weighted by the rarity of the words.
        """
        self._read_sealed(tenant, lambda unit: None)
        return self._search_words(tenant, EVENTS, history_terms(query), limit=limit)

    def verify_events(self, tenant: str) -> AuditReport:
        """Verify the whole chain, continuing after broken links."""
        return self._read_sealed(tenant, self._verify)

    def _verify(self, unit: Unit) -> AuditReport:
        report = verify_chain(unit, self.audit_key)
        waiting = "" if self._engine.has_single_writer else find_waiting_problem(unit)
        return replace(report, is_intact=False, problem=report.problem or waiting) if waiting else report

    def audit_head(self, tenant: str) -> AuditHead:
        """Return the number and hash of the last event."""
        return self._read_sealed(tenant, read_head)

    def check_heads(self, tenant: str, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Check for each head if it once was the last event of this log."""

        def check(unit: Unit) -> list[HeadCheck]:
            hashes: dict[int, str] = {}
            for start in range(0, len(heads), PAGE):
                numbers = self._engine.numbers([head.id for head in heads[start : start + PAGE]])
                hashes |= {row[1]: row[8] for row in unit.all("find_events", tenant=tenant, ids=numbers)}
            fits = [hashes.get(head.id) == head.hash for head in heads]
            erasures = [] if all(fits) else [readable_event(row) for row in unit.all("erasures", tenant=tenant)]
            return [
                HeadCheck(head=head, is_ok=True) if fit else _explain_changed_head(head, hashes.get(head.id), erasures)
                for head, fit in zip(heads, fits, strict=True)
            ]

        return self._read_sealed(tenant, check)


def _explain_changed_head(head: AuditHead, hash: str | None, erasures: Sequence[AuditEvent]) -> HeadCheck:
    """Explain a head whose hash changed: an erasure records which events it re-sealed and the head before it."""
    if hash is None:
        return HeadCheck(head=head, is_ok=False, says=f"Event {head.id} was recorded as the last one and is missing.")
    for each in erasures:
        first, before = each.meta.get("resealed_from"), each.meta.get("head_before")
        if each.id > head.id and isinstance(first, int) and first <= head.id and isinstance(before, dict):
            if before.get("id") == head.id and before.get("hash") != head.hash:
                break
            says = f"Event {head.id} was re-sealed by the erasure of event {each.id}."
            return HeadCheck(head=head, is_ok=True, says=says)
    says = f"Event {head.id} has a different hash than recorded: the log was rewritten."
    return HeadCheck(head=head, is_ok=False, says=says)


def _note_change(unit: Unit, event: AuditEvent) -> None:
    """Have the tenant maintained after a change, unless it is one of maintenance itself."""
    if not event.action.startswith(MAINTENANCE):
        note_change(unit)


def read_head(unit: Unit) -> AuditHead:
    """Read the id and hash of the tenant's last event."""
    row = unit.one("audit_head", tenant=unit.tenant)
    return AuditHead() if row is None else AuditHead(id=row[0], hash=row[1])


def refuse_foreign(head_hash: str, key: str) -> None:
    """Refuse to write to a log that is keyed with another key. Raises: ReadOnly."""
    if is_foreign(head_hash, key):
        raise ReadOnly(OTHER_KEY if key else NO_KEY)


def verify_chain(unit: Unit, key: str) -> AuditReport:
    """Verify the chain from the first event to the head."""
    walk = ChainWalk(key)
    while rows := unit.all("events_after", tenant=unit.tenant, id=walk.at, limit=PAGE):
        check_deadline()
        for row in rows:
            walk.take(row)
    return walk.report(read_head(unit))


class ChainWalk:
    """State of a walk along the chain. After a broken event it resumes from the stored hash."""

    def __init__(self, key: str) -> None:
        self.at = 0
        self._key = key
        self.hash = START  # of the event it is at
        self._keyed_from: int | None = None
        self._broken: list[int] = []
        self._problem = ""

    @property
    def is_broken(self) -> bool:
        return bool(self._broken)

    def take(self, row: Row) -> None:
        id, previous_hash, hash = row[1], row[7], row[8]
        if id != self.at + 1:
            self._break(range(self.at + 1, id), f"Event {self.at + 1} is missing.")
            self.hash = previous_hash
        problem = _find_problem(row, self.hash, key=self._key, must_be_keyed=self._keyed_from is not None)
        if problem:
            self._break(range(id, id + 1), problem)
        if self._keyed_from is None and is_keyed(hash):
            self._keyed_from = id
        self.at, self.hash = id, hash

    def report(self, head: AuditHead) -> AuditReport:
        if (self.at, self.hash) != (head.id, head.hash):
            self._break(range(self.at + 1, max(head.id, self.at + 1) + 1), CUT)
        elif self._key and self.at and self._keyed_from is None and not self._problem:
            self._problem = NOTHING_KEYED
        broken_at = self._broken[0] if self._broken else None
        return AuditReport(
            is_intact=not self._problem,
            events=self.at if broken_at is None else broken_at - 1,
            broken_at=broken_at,
            problem=self._problem,
            broken=tuple(self._broken),
            head=head,
            keyed_from=self._keyed_from,
        )

    def _break(self, ids: range, problem: str) -> None:
        self._problem = self._problem or problem
        self._broken += ids[: MAX_BROKEN - len(self._broken)]


def _find_problem(row: Row, previous_hash: str, *, key: str, must_be_keyed: bool) -> str:
    *columns, folded = row
    try:
        event = event_from(columns)
        problem = find_seal_problem(event, previous_hash, key=key, must_be_keyed=must_be_keyed)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # Every event we write is readable, so this one was tampered with.
        return f"Event {columns[1]} was changed after it was written."
    # The folded copy, which searches use, must match the message.
    if not problem and folded != fold(event.message):
        return f"Event {columns[1]} was changed after it was written."
    return problem


def _last_event(unit: Unit) -> int:
    return read_head(unit).id


def _events_after(unit: Unit, id: int, limit: int) -> Sequence[tuple[int, bytes]]:
    rows = unit.all("event_words_after", tenant=unit.tenant, id=id, limit=limit)
    return [(number, encode_words(history_terms(str(message)))) for number, message in rows]


EVENTS = HistoryShelf(SHELF, _last_event, _events_after, MAX_SEARCHED)


class Sealing:
    """New hashes of the audit log after some events are cleared.

    They are computed from a snapshot first, so that writers wait only for the events added since.
    """

    def __init__(self, cleared: Mapping[int, Trace], key: str) -> None:
        """Set up for the cleared events, by number."""
        self.first = min(cleared)
        self._cleared = cleared
        self._key = key
        self._start()

    def follow(self, unit: Unit) -> None:
        """Read on to the end of the log, or to the first broken event."""
        while rows := unit.all("events_after", tenant=unit.tenant, id=self._walk.at, limit=PAGE):
            check_deadline()
            for row in rows:
                self._walk.take(row)
                if self._walk.is_broken:
                    return
                self._add_hash(row)

    def is_complete(self, unit: Unit) -> bool:
        """Read the events added since; return False if the log is broken."""
        at = unit.all("events_after", tenant=unit.tenant, id=self._walk.at - 1, limit=1)
        # Another erasure re-sealed the log meanwhile.
        if at and at[0][8] != self._walk.hash:
            self._start()
        if not self._walk.is_broken:
            self.follow(unit)
        return not self._walk.report(read_head(unit)).broken

    def write(self, unit: Unit) -> None:
        """Store the new hashes of the events and of the head."""
        before = [self._before, *self._hashes]
        unit.run_many(
            "seal_event",
            (
                {"tenant": unit.tenant, "id": id, "previous_hash": previous_hash, "hash": hash}
                for id, previous_hash, hash in zip(count(self.first), before, self._hashes, strict=False)
            ),
        )
        unit.put("keep_audit_hash", tenant=unit.tenant, hash=before[-1])

    def _start(self) -> None:
        self._walk = ChainWalk(self._key)
        self._before = START
        self._hashes: list[str] = []

    def _add_hash(self, row: Row) -> None:
        event = event_from(row[:-1])
        if event.id < self.first:
            self._before = event.hash
            return
        if event.id in self._cleared:
            trace = self._cleared[event.id]
            agent = None if trace.has_ids else event.agent_id
            action = ERASED_ACTION if trace.has_action else event.action
            event = replace(event, message=ERASED, meta={}, agent_id=agent, action=action)
        previous_hash = self._hashes[-1] if self._hashes else self._before
        self._hashes.append(event_hash(replace(event, previous_hash=previous_hash), previous_hash, self._key))
