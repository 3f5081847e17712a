"""Audit events that wait to be added to the chain of their tenant.

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
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from wellkept.errors import WellkeptError
from wellkept.history.rules_history import canonical_json, event_hash, is_foreign, is_keyed, key_mark, seal_event
from wellkept.model import AuditEvent
from wellkept.store.engine import Unit
from wellkept.store.tables.rows import event_from, event_values

LANES = 16
BATCH = 100
"""Waiting events of each lane that are added to the chain by one transaction."""

PAUSE = 0.2
"""Seconds from a commit until its events are added to the chain, together with those that follow meanwhile."""

CLOCK_STEP = timedelta(milliseconds=100)
"""Longest time for which a clock may show the same."""

RETRY_PAUSE = 5.0
"""Seconds after which a failed attempt is repeated."""

WAITING = "waiting"
"""Takes the place of the previous hash in the hash of a waiting event."""

REFUSED = (
    "{} that waited to be added to the log does not match its hash: it was changed, or written without the audit_key."
)
MISSING = "{} that waited to be added to the log is missing."

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
            hash=event_hash(replace(event, id=0), WAITING, key),
            mark=mark,
        )


def seal_waiting(unit: Unit, head: Head, key: str) -> tuple[Head, bool]:
    """Add waiting events to the chain, whose head is locked; return the new head, and True if none are left.

    None are added if some are keyed with another key: only a process that has it can add them.
    """
    last_id, last_hash, lanes_text = head
    rows = unit.all("list_waiting_events", tenant=unit.tenant, limit=BATCH)
    if not rows or is_foreign(last_hash, key) or any(is_foreign(row[2], key) for row in rows):
        return head, True
    lanes: dict[str, list[int]] = json.loads(lanes_text)
    sealed: list[AuditEvent] = []
    for lane, place, hash, event in _order(rows):
        is_own = event is not None and hash == event_hash(event, WAITING, key if is_keyed(hash) else "")
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
    return new, max(Counter(row[0] for row in rows).values()) < BATCH


def find_waiting_problem(unit: Unit) -> str:
    """Describe what is wrong with events that waited; return an empty string if nothing is."""
    refused = missing = 0
    for lane, last_place, lanes_text, waiting, refused_here in unit.all("count_lanes", tenant=unit.tenant):
        place, missed = json.loads(lanes_text or "{}").get(str(lane), (0, 0))
        refused += refused_here
        missing += missed + max(0, last_place - place - (waiting - refused_here))
    found = [(REFUSED, refused), (MISSING, missing)]
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
            self._timer = threading.Timer(PAUSE if after is None else after, self._seal_all)
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
