"""Maintenance that runs by itself: of the whole store at intervals, and of an agent after many writes.

Both are one job in the background. It starts with a server, with the first write or recall of any other program, or
with the request to maintain an agent. Several processes may run a schedule on one store: a process runs maintenance
only when the last run, whoever made it, is older than the interval.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from wellkept.errors import Cancelled, Conflict, WellkeptError
from wellkept.extension import Clock
from wellkept.model import MaintenanceStatus, Owner, StoreReport
from wellkept.upkeep.background import Job
from wellkept.upkeep.maintain import Maintain

FIRST_RUN = timedelta(minutes=1)
"""Time after the start at which a store that was never maintained is."""

JITTER = 0.1
"""Share of the interval by which a run may be later, so that servers do not all start at the same moment."""

NUDGE_SECONDS = 5.0
"""Seconds between the first write or recall and the question whether a run is due, so that short programs only do their
own work."""

SETTLE_SECONDS = 0.2
"""Seconds between the request to maintain an agent and the run: the transaction that asked may not be committed."""

RETRY_SECONDS = 60.0
CLOSE_SECONDS = 5.0
"""Seconds that `close` waits for a run to stop."""

log = logging.getLogger("wellkept")


class MaintenanceSchedule:
    """Job that runs maintenance when it is due."""

    def __init__(self, maintain: Maintain, flush: Callable[[], None], now: Clock, *, interval: float) -> None:
        """Set up the schedule; nothing runs yet.

        `flush` writes the queued retrieval marks. An `interval` of 0 seconds never runs the whole store.
        """
        self._maintain = maintain
        self._flush = flush
        self._now = now
        self._interval = timedelta(seconds=interval)
        self._status = MaintenanceStatus()
        self._job = Job("maintenance", self._run, failed="Maintenance failed")
        # Guards the fields below.
        self._lock = threading.Lock()
        self._waiting: dict[Owner, None] = {}
        self._started_at: datetime | None = None
        self._late = 1.0

    def start(self, after: float = 0.0) -> None:
        """Maintain the whole store at intervals from now on, unless the interval is 0."""
        with self._lock:
            if not self._interval or self._started_at is not None or self._job.is_closed:
                return
            self._started_at, self._late = self._now(), _draw_delay()
        self._job.wake(after)

    def nudge(self) -> None:
        """Do as `start`, a moment later; called when a program that is no server first stores or recalls something."""
        self.start(NUDGE_SECONDS)

    def stop(self) -> None:
        """End the runs at intervals; one that is running ends after its current batch."""
        self._started_at = None

    def request(self, owner: Owner) -> None:
        """Maintain the memories of an agent soon, and return at once."""
        with self._lock:
            self._waiting[owner] = None
        self._job.wake(SETTLE_SECONDS)

    def read_totals(self) -> StoreReport:
        """Return the size of the store and what is in all tenants, with one query. Raises: StoreError."""
        return self._maintain.read_totals()

    def status(self) -> MaintenanceStatus:
        """Return what is known about the last and the next run, without asking the store."""
        return self._status

    def refresh(self) -> MaintenanceStatus:
        """Return the last run, by any process, and the next one of this process. Raises: StoreError."""
        last, started_at = self._maintain.find_last(), self._started_at
        next_at = None
        if started_at is not None:
            now = self._now()
            # A run that is yet to come was one of a clock that has been put right since.
            has_run = last is not None and last.at <= now + self._interval
            since_last = last.at + self._interval * self._late if last is not None and has_run else None
            next_at = since_last or min(started_at, now) + min(FIRST_RUN, self._interval) * self._late
        self._status = MaintenanceStatus(last=last, next_at=next_at)
        return self._status

    def run_if_due(self) -> bool:
        """Maintain the whole store if the last run is long enough ago; return True if it did.

        Raises: WellkeptError.
        """
        next_at = self.refresh().next_at
        if next_at is None or next_at > self._now():
            return False
        try:
            self._flush()
            self._maintain(is_automatic=True, is_stopped=lambda: self._started_at is None)
        except Conflict:
            # Another process has begun.
            return False
        finally:
            self._late = _draw_delay()
        self.refresh()
        return True

    def close(self) -> None:
        """Maintain the agents that wait, stop any other run after its current batch, and end the job."""
        self.stop()
        self._job.close(CLOSE_SECONDS)
        try:
            self._maintain_waiting()
        except WellkeptError as error:
            log.warning("Maintenance failed: %s", error)

    def _run(self) -> float | None:
        """Do what is due; return the seconds until the next look, None if there is none."""
        self._maintain_waiting()
        if self._started_at is None:
            return None
        with suppress(Cancelled):
            self.run_if_due()
        next_at = self._status.next_at
        left = 0.0 if next_at is None else (next_at - self._now()).total_seconds()
        return left if left > 0 else RETRY_SECONDS

    def _maintain_waiting(self) -> None:
        while self._waiting:
            with self._lock:
                owner, _ = self._waiting.popitem()
            with suppress(Conflict):
                self._maintain.maintain_agent(owner)


def _draw_delay() -> float:
    return 1 + random.uniform(0, JITTER)
