"""Maintenance that runs by itself: of the whole store at intervals, and of an agent after many writes.

Both happen on one thread. It starts with a server, with the first write or recall of any other program, or with the
request to maintain an agent. Several processes may run a schedule on one store: a process runs maintenance only when
the last run, whoever made it, is older than the interval.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from wellkept.errors import Cancelled, Conflict, WellkeptError
from wellkept.extension import Clock
from wellkept.model import MaintenanceStatus, Owner, StoreReport
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
    """Thread that runs maintenance when it is due."""

    def __init__(self, maintain: Maintain, flush: Callable[[], None], now: Clock, *, interval: float) -> None:
        """Set up the schedule; nothing runs yet.

        `flush` writes the queued retrieval marks. An `interval` of 0 seconds never runs the whole store.
        """
        self._maintain = maintain
        self._flush = flush
        self._now = now
        self._interval = timedelta(seconds=interval)
        self._status = MaintenanceStatus()
        # Guards the fields below; notified when one of them changes.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: dict[Owner, None] = {}
        self._started_at: datetime | None = None
        self._late = 1.0
        self._wait: float | None = 0.0
        self._is_closed = False
        # The last unexpected error, so that a repeated one is logged once.
        self._logged = ""

    def start(self) -> None:
        """Maintain the whole store at intervals from now on, unless the interval is 0."""
        with self._changed:
            if self._interval and self._started_at is None and not self._is_closed:
                self._started_at, self._late = self._now(), _draw_delay()
                self._wake()

    def nudge(self) -> None:
        """Do as `start`, a moment later; called when a program that is no server first stores or recalls something."""
        with self._changed:
            if self._started_at is None and not self._is_alive():
                self._wait = NUDGE_SECONDS
        self.start()

    def stop(self) -> None:
        """End the runs at intervals; one that is running ends after its current batch."""
        with self._changed:
            self._started_at = None
            self._changed.notify_all()

    def request(self, owner: Owner) -> None:
        """Maintain the memories of an agent soon, and return at once."""
        with self._changed:
            if not self._is_closed:
                self._waiting[owner] = None
                self._wake()

    def read_totals(self) -> StoreReport:
        """Return the size of the store and what is in all tenants, with one query; restart the thread if it died.

        Raises: StoreError.
        """
        self._restart()
        return self._maintain.read_totals()

    def status(self) -> MaintenanceStatus:
        """Return what is known about the last and the next run, without asking the store."""
        return self._status

    def refresh(self) -> MaintenanceStatus:
        """Return the last run, by any process, and the next one of this process; restart the thread if it died.

        Raises: StoreError.
        """
        started_at = self._restart()
        last = self._maintain.find_last()
        next_at = None
        if started_at is not None:
            now = self._now()
            # A run that is yet to come was one of a clock that has been put right since.
            has_run = last is not None and last.at <= now + self._interval
            since_last = last.at + self._interval * self._late if last is not None and has_run else None
            next_at = since_last or min(started_at, now) + min(FIRST_RUN, self._interval) * self._late
        self._status = MaintenanceStatus(last=last, next_at=next_at)
        return self._status

    def _restart(self) -> datetime | None:
        """Start the thread again if it died; return since when maintenance runs at intervals."""
        with self._changed:
            if self._started_at is not None and not self._is_alive():
                self._wake()
            return self._started_at

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
        """Maintain the agents that wait, stop any other run after its current batch, and end the thread."""
        with self._changed:
            self._is_closed, self._started_at = True, None
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_SECONDS)

    def _wake(self) -> None:
        if not self._is_alive():
            self._thread = threading.Thread(target=self._work, name="wellkept-maintenance", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._is_closed:
                    # None if `start` came after the question when the next run is due.
                    self._changed.wait(0.0 if self._wait is None and self._started_at is not None else self._wait)
                if self._waiting and not self._is_closed:
                    self._changed.wait_for(lambda: self._is_closed, SETTLE_SECONDS)
                owners, self._waiting = list(self._waiting), {}
                if self._is_closed and not owners:
                    return
            for owner in owners:
                self._attempt(partial(self._maintain.maintain_agent, owner))
            self._wait = self._attempt(self._run_regular)

    def _run_regular(self) -> float | None:
        """Run maintenance if it is due; return the seconds until it is due again, None if it never is."""
        if self._started_at is None:
            return None
        self.run_if_due()
        next_at = self._status.next_at
        left = RETRY_SECONDS if next_at is None else (next_at - self._now()).total_seconds()
        return left if left > 0 else RETRY_SECONDS

    def _attempt(self, work: Callable[[], object]) -> float | None:
        try:
            result = work()
        except (Conflict, Cancelled):
            return RETRY_SECONDS
        except WellkeptError as error:
            # What was done is committed; the next run continues.
            log.warning("Maintenance failed: %s", error)
            return RETRY_SECONDS
        except Exception as error:
            # A mistake of ours or of an embedder that the caller passed in; it must not end the thread.
            if self._logged != (said := f"{type(error).__name__}: {error}"):
                log.exception("Maintenance failed unexpectedly and is tried again")
            self._logged = said
            return RETRY_SECONDS
        return result if isinstance(result, float) else None


def _draw_delay() -> float:
    return 1 + random.uniform(0, JITTER)
