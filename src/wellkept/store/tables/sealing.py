"""Sealing of the audit log after events of it lost their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from wellkept.deadline import check_deadline
from wellkept.history.rules_audit import START, event_hash
from wellkept.model import Trace
from wellkept.store.engine import Row, Unit
from wellkept.store.tables.audit import PAGE, ChainWalk, read_head
from wellkept.store.tables.rows import event_from
from wellkept.upkeep.rules_mentions import ERASED, ERASED_ACTION


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
