"""The audit log as rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from recollect.caller import current_caller
from recollect.deadline import check_deadline
from recollect.model import ACTOR, AuditEvent, AuditReport, Match
from recollect.policy.audit import START, event_hash
from recollect.policy.history import MAX_SEARCHED, history_terms
from recollect.policy.text import fold, like_literal
from recollect.store.engine import Row, Unit
from recollect.store.history_rows import event_from, event_values, readable_event
from recollect.store.rows import BEHIND_ALL, MAX_PATTERN_BYTES
from recollect.store.words import SearchedByWords, Shelf, encoded

SHELF = "audit"
PAGE = 1000


class AuditRows(SearchedByWords):
    """`ports.AuditStore`. The tenant's shelf row is the chain's head: whoever writes an event holds it until commit."""

    def add_event(self, event: AuditEvent) -> AuditEvent:
        if actor := current_caller().actor:
            event = replace(event, meta={**event.meta, ACTOR: actor})

        def add(unit: Unit) -> AuditEvent:
            head = unit.one("take_audit_number", tenant=event.tenant)
            if head is None:
                unit.run("add_tenant", tenant=event.tenant, now=event.at)
                unit.run("add_shelf", tenant=event.tenant, shelf=SHELF)
                head = unit.one("take_audit_number", tenant=event.tenant)
            assert head is not None
            number, previous_hash = head
            numbered = replace(event, id=number, previous_hash=previous_hash)
            sealed = replace(numbered, hash=event_hash(numbered, previous_hash))
            unit.run("add_event", **event_values(sealed))
            unit.run("keep_audit_hash", tenant=event.tenant, hash=sealed.hash)
            return sealed

        return self._write(event.tenant, add)

    def list_events(
        self,
        tenant: str,
        *,
        needle: str = "",
        agents: Collection[str] = (),
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[AuditEvent]:
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
        return [readable_event(row) for row in self._read(tenant, lambda unit: unit.all(name, **values))]

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        if not ids:
            return {}
        numbers = self._engine.numbers(ids)
        rows = self._read(tenant, lambda unit: unit.all("find_events", tenant=tenant, ids=numbers))
        return {row[1]: readable_event(row) for row in rows}

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        return self._found_by_words(tenant, EVENTS, history_terms(query), limit=limit)

    def verify_events(self, tenant: str) -> AuditReport:
        return self._read(tenant, verified)


def verified(unit: Unit) -> AuditReport:
    """Whether the chain is whole from its beginning to its head."""
    head = unit.one("audit_head", tenant=unit.tenant)
    last_id, last_hash = head if head is not None else (0, START)
    count, previous_hash = 0, START
    while rows := unit.all("events_after", tenant=unit.tenant, id=count, limit=PAGE):
        check_deadline()
        for row in rows:
            problem = _problem(row, count + 1, previous_hash)
            if problem:
                return AuditReport(is_intact=False, events=count, broken_at=count + 1, problem=problem)
            count, previous_hash = row[1], row[8]
    if (count, previous_hash) != (last_id, last_hash):
        problem = "Events are missing from the end of the log."
        return AuditReport(is_intact=False, events=count, broken_at=count + 1, problem=problem)
    return AuditReport(is_intact=True, events=count)


def _problem(row: Row, expected_id: int, previous_hash: str) -> str:
    *columns, folded = row
    if columns[1] != expected_id:
        return f"Event {expected_id} is missing."
    try:
        event = event_from(columns)
        is_whole = (event.previous_hash, event.hash) == (previous_hash, event_hash(event, previous_hash))
    except (ValueError, TypeError, OverflowError, RecursionError):  # what we wrote can be read; this cannot
        is_whole = False
    if not is_whole or folded != fold(event.message):  # it must also be found by the words it has
        return f"Event {expected_id} was changed after it was written."
    return ""


def _last_event(unit: Unit) -> int:
    head = unit.one("audit_head", tenant=unit.tenant)
    return 0 if head is None else int(head[0])


def _events_after(unit: Unit, id: int) -> Sequence[tuple[int, bytes]]:
    rows = unit.all("event_words_after", tenant=unit.tenant, id=id)
    return [(number, encoded(history_terms(str(message)))) for number, message in rows]


EVENTS = Shelf(SHELF, _last_event, _events_after, MAX_SEARCHED)
