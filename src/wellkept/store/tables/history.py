"""Rows of the audit log, of events that wait to be added to it, and of workflows and their steps.

The chain has one head, so writers that add to it directly stand in one queue. On PostgreSQL an event is therefore
written in the transaction of its change to one of 16 lanes, chosen by the agent, and is committed with it. The lane
numbers its events. Soon after, whoever locks the head adds all waiting events to the chain, in one transaction.

A waiting event has a hash of its own, keyed if the log is. An event that does not match it is refused: it stays where
it is, and so shows. A place that is missing in a lane is counted in the row of the head, and shows as well.
"""

from __future__ import annotations

import json
import logging
import threading
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from wellkept.caller import current_caller
from wellkept.deadline import check_deadline
from wellkept.errors import Conflict, NotFound, ReadOnly, WellkeptError
from wellkept.history.rules_history import (
    MAX_SEARCHED,
    START,
    canonical_json,
    event_hash,
    find_seal_problem,
    history_terms,
    is_foreign,
    is_keyed,
    is_plain_json,
    key_mark,
    seal_event,
    step_words,
)
from wellkept.language.text import fold, like_literal
from wellkept.memory.rules_filters import Condition
from wellkept.model import ACTOR, AuditEvent, AuditHead, AuditReport, HeadCheck, Match, Workflow, WorkflowStep
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Engine, Row, Unit, Units
from wellkept.store.search.encoding import encode_terms
from wellkept.store.search.memory_search import HistoryKey
from wellkept.store.tables.rows import (
    BEHIND_ALL,
    MAX_PATTERN_BYTES,
    event_from,
    event_values,
    json_text,
    note_change,
    readable_event,
    step_from,
    step_values,
    workflow_from,
    workflow_values,
)

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


class AuditRows(Units):
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
            head = _begin_log(unit, event.at)
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
            head = _begin_log(unit, first[4])
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
        name = "list_events_of_agents" if agents else "list_events"
        before = BEHIND_ALL if before is None else before
        values = {"tenant": tenant, "needle": pattern, "before": before, "limit": limit, "names": sorted(agents)}
        clause = compile_filter(where, self._engine.name)
        rows = self._read_sealed(tenant, lambda unit: unit.all(name, clause, **values))
        return [*map(readable_event, rows)]

    def find_events(self, tenant: str, ids: Sequence[int]) -> Mapping[int, AuditEvent]:
        """Return the existing ones of these events, by number."""
        if not ids:
            return {}
        rows = self._read_sealed(tenant, lambda unit: unit.all("find_events", tenant=tenant, ids=list(ids)))
        return {row[1]: readable_event(row) for row in rows}

    def search_events(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find events that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        The score is the share of the query found in the message, 0 to 1, weighted by the rarity of the words.
        """
        self._read_sealed(tenant, lambda unit: None)
        key = HistoryKey(tenant, SHELF, _last_event, _events_after, MAX_SEARCHED)
        return self._search(tenant).search_history(key, history_terms(query), limit)

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
                numbers = [head.id for head in heads[start : start + PAGE]]
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


def _begin_log(unit: Unit, now: Any) -> Row:
    """Add the row of a log that has no events yet; return its head, which is locked."""
    unit.put("add_tenant", tenant=unit.tenant, now=now)
    unit.put("add_shelf", tenant=unit.tenant, shelf=SHELF)
    head = unit.one("hold_audit_head", tenant=unit.tenant)
    assert head is not None
    return head


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
    return [(number, encode_terms(history_terms(str(message)))) for number, message in rows]


LANES = 16
SEAL_BATCH = 100
"""Waiting events of each lane that are added to the chain by one transaction."""

SEAL_PAUSE = 0.2
"""Seconds from a commit until its events are added to the chain, together with those that follow meanwhile."""

CLOCK_STEP = timedelta(milliseconds=100)
"""Longest time for which a clock may show the same."""

RETRY_PAUSE = 5.0
"""Seconds after which a failed attempt is repeated."""

WAITING_HASH = "waiting"
"""Takes the place of the previous hash in the hash of a waiting event."""

EVENTS_REFUSED = (
    "{} that waited to be added to the log does not match its hash: it was changed, or written without the audit_key."
)
EVENTS_MISSING = "{} that waited to be added to the log is missing."

Head = tuple[int, str, str]
"""Number and hash of the last event, and the state of the lanes."""

log = logging.getLogger("wellkept")


def find_lane(agent: str | None) -> int:
    """Return the lane of an agent's events."""
    return zlib.crc32((agent or "").encode()) % LANES


class EventTimes:
    """Times of the events of one process, which grow even if the clock stands still for a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = datetime.min.replace(tzinfo=UTC)

    def move_on(self, at: datetime) -> datetime:
        """Return the time of the next event, which is that of the clock or a little later."""
        with self._lock:
            # A clock that was set back is believed.
            is_standing = at <= self._last < at + CLOCK_STEP
            self._last = self._last + timedelta(microseconds=1) if is_standing else at
            return self._last


def add_waiting(unit: Unit, events: Sequence[AuditEvent], key: str, times: EventTimes) -> None:
    """Write the events of one transaction, as its last statements.

    All take the lane of the first, so that no two transactions wait for each other's lanes. Their times must differ,
    because they are added to the chain in the order of time.
    """
    lane, mark = find_lane(events[0].agent_id), f"{key_mark(key)}%" if key else ""
    unit.put("take_places", tenant=unit.tenant, lane=lane, count=len(events))
    for number, event in enumerate(events, 1):
        event = replace(event, at=times.move_on(event.at))
        unit.put(
            "add_waiting_event",
            tenant=unit.tenant,
            lane=lane,
            behind=len(events) - number,
            at=event.at,
            action=event.action,
            agent_id=event.agent_id,
            message=event.message,
            meta=canonical_json(event.meta),
            hash=event_hash(replace(event, id=0), WAITING_HASH, key),
            mark=mark,
        )


def seal_waiting(unit: Unit, head: Head, key: str) -> tuple[Head, bool]:
    """Add waiting events to the chain, whose head is locked; return the new head, and True if none are left.

    None are added if some are keyed with another key: only a process that has it can add them.
    """
    last_id, last_hash, lanes_text = head
    rows = unit.all("list_waiting_events", tenant=unit.tenant, limit=SEAL_BATCH)
    if not rows or is_foreign(last_hash, key) or any(is_foreign(row[2], key) for row in rows):
        return head, True
    lanes: dict[str, list[int]] = json.loads(lanes_text)
    sealed: list[AuditEvent] = []
    for lane, place, hash, event in _order(rows):
        is_own = event is not None and hash == event_hash(event, WAITING_HASH, key if is_keyed(hash) else "")
        # A place that the chain holds was filled a second time.
        is_repeated = place <= lanes.get(str(lane), (0, 0))[0]
        if not is_own or is_repeated or (is_keyed(last_hash) and not is_keyed(hash)):
            unit.put("refuse_waiting_event", tenant=unit.tenant, lane=lane, place=place)
            continue
        last_id += 1
        assert event is not None
        sealed.append(seal_event(replace(event, id=last_id), last_hash, key if is_keyed(hash) else ""))
        last_hash = sealed[-1].hash
    _count_places(lanes, [(row[0], row[1]) for row in rows])
    unit.run_many("add_event", (event_values(event) for event in sealed))
    for lane in {row[0] for row in rows}:
        unit.put("remove_waiting_events", tenant=unit.tenant, lane=lane, place=lanes[str(lane)][0])
    new = (last_id, last_hash, json.dumps(lanes))
    unit.put("set_sealed_head", tenant=unit.tenant, last_id=last_id, last_hash=last_hash, lanes=new[2])
    # A lane that fills its part of the batch may have more.
    return new, max(Counter(row[0] for row in rows).values()) < SEAL_BATCH


def find_waiting_problem(unit: Unit) -> str:
    """Describe what is wrong with events that waited; return an empty string if nothing is."""
    refused = missing = 0
    for lane, last_place, lanes_text, waiting, refused_here in unit.all("count_lanes", tenant=unit.tenant):
        place, missed = json.loads(lanes_text or "{}").get(str(lane), (0, 0))
        refused += refused_here
        missing += missed + max(0, last_place - place - (waiting - refused_here))
    found = [(EVENTS_REFUSED, refused), (EVENTS_MISSING, missing)]
    return " ".join(text.format(f"{count:,} event" + "s" * (count > 1)) for text, count in found if count)


def _order(rows: Sequence[Sequence[Any]]) -> list[tuple[int, int, str, AuditEvent | None]]:
    """Order events by their time, which their hash covers, so that nobody can reorder those that wait.

    Unkeyed events come first, because none may follow a keyed one.
    """
    events = [(lane, place, hash, _read_event(columns)) for lane, place, hash, *columns in rows]
    return sorted(events, key=lambda each: (is_keyed(each[2]), each[3].at.timestamp() if each[3] else 0.0, *each[:2]))


def _read_event(columns: Sequence[Any]) -> AuditEvent | None:
    tenant, at, action, agent_id, message, meta = columns
    try:
        event = event_from([tenant, 0, at, action, agent_id, message, meta, "", ""])
    except (ValueError, TypeError, RecursionError):
        return None
    return event if isinstance(event.meta, dict) else None


def _count_places(lanes: dict[str, list[int]], places: Sequence[tuple[int, int]]) -> None:
    """Count the places that are now in the chain, and those that are missing before them."""
    for lane, place in places:
        known = lanes.setdefault(str(lane), [0, 0])
        if place > known[0]:
            known[1] += place - known[0] - 1
            known[0] = place


class EventSealer:
    """Adds the waiting events of tenants to their chains, a moment after the first of them."""

    def __init__(self, seal: Callable[[str], bool]) -> None:
        """Set up for a method that adds waiting events of a tenant; it returns False if some still wait."""
        # A timer must not keep the store alive.
        self._seal = weakref.WeakMethod(seal)
        self._tenants: set[str] = set()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def wake(self, tenant: str, *, after: float | None = None) -> None:
        """Have the events of a tenant added soon. Safe from any thread."""
        with self._lock:
            self._tenants.add(tenant)
            if self._is_closed or (self._timer is not None and self._timer.is_alive()):
                return
            self._timer = threading.Timer(SEAL_PAUSE if after is None else after, self._seal_all)
            self._timer.name, self._timer.daemon = "wellkept-audit", True
            self._timer.start()

    def close(self) -> None:
        """Add what still waits, and stop. What cannot be added now is added by the next writer or reader."""
        with self._lock:
            self._is_closed, timer = True, self._timer
        if timer is not None and timer is not threading.current_thread():
            timer.cancel()
            timer.join()
        self._seal_all()

    def _seal_all(self) -> None:
        """Add the events of all tenants; try those again later that could not be added."""
        with self._lock:
            tenants, self._tenants, self._timer = self._tenants, set(), None
        for tenant in sorted(tenants):
            seal = self._seal()
            try:
                if seal is not None and not seal(tenant):
                    self.wake(tenant)
            except WellkeptError as error:
                log.warning("Events of the audit log wait to be added to its chain: %s", error)
                self.wake(tenant, after=RETRY_PAUSE)


STEPS_SHELF = "workflow"
NO_SUCH_WORKFLOW = "There is no such workflow."


class WorkflowRows(Units):
    """Workflows and their steps, readable by every agent of the tenant.

    The tenant's shelf row numbers the steps; adding one locks it until commit.
    """

    def add_workflow(self, workflow: Workflow) -> Workflow:
        """Add a workflow. Raises: Conflict when the tenant has a workflow with that id."""

        def add(unit: Unit) -> int:
            unit.put("add_tenant", tenant=workflow.tenant, now=workflow.created_at)
            return unit.run("add_workflow", **workflow_values(workflow))

        if not self.write(workflow.tenant, add):
            raise Conflict(f"Workflow {workflow.id!r} already exists.")
        return workflow

    def get_workflow(self, tenant: str, id: str) -> Workflow:
        """Return one workflow. Raises: NotFound."""
        return workflow_from(self._get(tenant, "find_workflow", NO_SUCH_WORKFLOW, id=id))

    def find_workflow(self, tenant: str, name: str) -> Workflow | None:
        """Return the workflow with this id, or else the newest with this name."""
        row = self._one(tenant, "find_workflow", id=name) or self._one(tenant, "find_workflow_named", name=name)
        return None if row is None else workflow_from(row)

    def list_workflows(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Workflow]:
        """List workflows by id, starting after `after`."""
        return [*map(workflow_from, self._all(tenant, "list_workflows", after=after, limit=limit))]

    def add_step(self, step: WorkflowStep) -> WorkflowStep:
        """Append a step to its workflow and return it with its position.

        Raises: NotFound when there is no such workflow.
        """
        tenant, words = step.tenant, encode_terms(history_terms(step_words(step)))

        def add(unit: Unit) -> WorkflowStep:
            workflow = unit.one("find_workflow", tenant=tenant, id=step.workflow_id)
            if workflow is None:
                raise NotFound(NO_SUCH_WORKFLOW)
            unit.put("add_shelf", tenant=tenant, shelf=STEPS_SHELF)
            number = unit.one("take_shelf_numbers", tenant=tenant, shelf=STEPS_SHELF, count=1)
            last = unit.one("last_step", tenant=tenant, workflow_id=step.workflow_id)
            assert number is not None
            assert last is not None
            placed = replace(step, position=last[0] + 1, workflow_name=workflow_from(workflow).name)
            # Steps are searched by words, never by substring.
            unit.put("add_step", **step_values(placed), folded="")
            place = {"tenant_id": tenant, "workflow_id": step.workflow_id, "position": placed.position}
            unit.put("index_step", **place, seq=number[0], terms=words)
            return placed

        return self.write(tenant, add)

    def list_steps(self, tenant: str, workflow_id: str, *, after: int = 0, limit: int = 100) -> Sequence[WorkflowStep]:
        """List steps in order, starting after the position `after`. Raises: NotFound."""

        def read(unit: Unit) -> Sequence[Row]:
            if unit.one("find_workflow", tenant=tenant, id=workflow_id) is None:
                raise NotFound(NO_SUCH_WORKFLOW)
            return unit.all("list_steps", tenant=tenant, workflow_id=workflow_id, after=after, limit=limit)

        return [step_from(row) for row in self.read(tenant, read)]

    def find_steps(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, WorkflowStep]:
        """Return the existing ones of these steps, by number."""
        rows = self._all(tenant, "find_steps", seqs=list(seqs)) if seqs else ()
        return {row[0]: step_from(row[1:]) for row in rows}

    def search_steps(self, tenant: str, query: str, *, limit: int = 10) -> Sequence[Match]:
        """Find steps that share words with `query` among the newest `history.rules_history.MAX_SEARCHED`, best first.

        Scored like events.
        """
        key = HistoryKey(tenant, STEPS_SHELF, _last_step, _steps_after, MAX_SEARCHED)
        return self._search(tenant).search_history(key, history_terms(query), limit)


def _last_step(unit: Unit) -> int:
    head = unit.one("steps_head", tenant=unit.tenant)
    return 0 if head is None else int(head[0])


def _steps_after(unit: Unit, seq: int, limit: int) -> Sequence[tuple[int, bytes]]:
    rows = unit.all("step_words_after", tenant=unit.tenant, seq=seq, limit=limit)
    return [(number, bytes(terms)) for number, terms in rows]
