"""Counts of a tenant's records by day, for overviews.

Counting reads every row, so a result that took long is kept: for `REST` times as long as it took. However often it is
asked for, counting takes at most one part in `REST` of a processor, and small stores are always counted anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from wellkept.extension import Clock
from wellkept.language.values import check_whole
from wellkept.model import DayCount, TenantStats
from wellkept.upkeep.background import Workers

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

DAYS = 30
MAX_DAYS = 366
EXPIRING = 6
"""Memories listed as next to expire."""

QUICK = 0.02
"""Seconds below which a result is not kept."""

PATIENCE = 0.25
"""Seconds that a page waits for a count."""

REST = 50
MAX_KEPT = 100


class CountTenant:
    """Service that counts, and keeps what took long to count. Its lock is not held while it counts."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        self._erasures = 0
        self._counting: set[tuple[str, int]] = set()
        self._running: dict[tuple[str, int], Future[TenantStats]] = {}
        self._workers = Workers()
        self._kept: OrderedDict[tuple[str, int], tuple[float, TenantStats]] = OrderedDict()

    def __call__(self, tenant: str, days: int = DAYS) -> TenantStats:
        """Count the records of a tenant by day. Raises: Invalid."""
        days = check_whole(days, "`days`", least=1, most=MAX_DAYS)
        key, began = (tenant, days), monotonic()
        with self._lock:
            until, kept = self._kept.get(key, (0.0, None))
            # While one thread counts anew, the others repeat the former result.
            if kept is not None and (began < until or key in self._counting):
                return kept
            erasures = self._erasures
            self._counting.add(key)
        try:
            now = self._now()
            since = datetime.combine(now.astimezone(UTC).date() - timedelta(days=days - 1), time(), UTC)
            counted = self._store.count_days(tenant, since=since, now=now, expiring=EXPIRING)
            self._keep(key, counted, took=monotonic() - began, erasures=erasures)
        finally:
            with self._lock:
                self._counting.discard(key)
        return counted

    def peek(self, tenant: str, days: int = DAYS) -> TenantStats | None:
        """Return the counts if they are ready within `PATIENCE`, otherwise the former ones, or None if there are none.

        A thread goes on counting. Raises: Invalid.
        """
        key = tenant, check_whole(days, "`days`", least=1, most=MAX_DAYS)
        with self._lock:
            until, kept = self._kept.get(key, (0.0, None))
            if kept is not None and monotonic() < until:
                return kept
            self._running = {each: counting for each, counting in self._running.items() if not counting.done()}
            if key not in self._running:
                self._running[key] = self._workers.submit(partial(self, tenant, days))
            counting = self._running[key]
        try:
            return counting.result(PATIENCE)
        except FutureTimeout:
            return kept

    def _keep(self, key: tuple[str, int], counted: TenantStats, *, took: float, erasures: int) -> None:
        with self._lock:
            self._kept.pop(key, None)
            # An erasure while it was counted may have removed what it lists.
            if took > QUICK and erasures == self._erasures:
                self._kept[key] = (monotonic() + REST * took, counted)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)

    def close(self) -> None:
        """End the threads."""
        self._workers.close()

    def forget(self, tenant: str) -> None:
        """Drop what is kept of a tenant: it lists texts that expire next."""
        with self._lock:
            self._erasures += 1
            for key in [each for each in self._kept if each[0] == tenant]:
                del self._kept[key]


def keep_agents(stats: TenantStats, agents: tuple[str, ...]) -> TenantStats:
    """Return the part of the counts that concerns these agents."""

    def keep(counts: tuple[DayCount, ...]) -> tuple[DayCount, ...]:
        return tuple(each for each in counts if each.agent in agents)

    return replace(
        stats,
        memories=keep(stats.memories),
        events=keep(stats.events),
        prompts=keep(stats.prompts),
        recalls=keep(stats.recalls),
        users=keep(stats.users),
        review={agent: count for agent, count in stats.review.items() if agent in agents},
        changes={agent: count for agent, count in stats.changes.items() if agent in agents},
        expiring=tuple(each for each in stats.expiring if each.owner.agent in agents),
        index_bytes=0,
    )
