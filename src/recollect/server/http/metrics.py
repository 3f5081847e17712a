"""Prometheus metrics.

Labels are declared routes, methods and statuses, never ids, tenants or content, so their number is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from recollect.api.recollect import Recollect
from recollect.errors import RecollectError

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GaugeMode = Literal["livemin", "livemax", "livesum"]
STORE_EVERY = timedelta(seconds=30)
"""Maximum age of values read from the store, so that frequent scrapes do not load it."""


class Metrics:
    """Metrics of one server."""

    def __init__(self, recollect: Recollect, shared: Path | None = None) -> None:
        """Create the metrics; those of worker processes that name the same folder `shared` are merged."""
        self.is_shared = shared is not None
        self._shared = shared
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "recollect_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "recollect_request_seconds",
            "How long answers took.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.refused = Counter(
            "recollect_refused",
            "Requests refused because there were too many: of one key, in all, after wrong keys, or connections.",
            ["why"],
            registry=registry,
        )
        self.under_way = Gauge(
            "recollect_requests_under_way",
            "Requests that are being worked on.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.failed_keys = Counter("recollect_failed_keys", "Keys and logins that opened nothing.", registry=registry)
        for why in ("rate", "load", "failures", "connections"):
            self.refused.labels(why)
        self._store = _StoreGauges(recollect)
        self._background = _BackgroundMetrics(recollect, registry)

    def refresh_background(self) -> None:
        """Publish the state of this process's background threads, for scrapes that another process answers."""
        self._background.refresh()

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format, those of other worker processes included."""
        self._background.refresh()
        registry = CollectorRegistry()
        if self._shared is None:
            registry.register(self.registry)
        else:
            _forget_dead_processes(self._shared)
            multiprocess.MultiProcessCollector(registry, path=str(self._shared))  # type: ignore[no-untyped-call]
        registry.register(self._store)
        return generate_latest(registry)


class _StoreGauges(Collector):
    """Size of the store and texts without a vector; left out while the store does not answer."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect
        self._known: tuple[datetime, int, int] | None = None

    def describe(self) -> list[GaugeMetricFamily]:
        # Registering must not query the store.
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        # Read once: a concurrent scrape may reset it.
        now, known = self._recollect.now(), self._known
        if known is None or not timedelta() <= now - known[0] < STORE_EVERY:
            try:
                known = (now, self._recollect.count_bytes(), self._recollect.count_waiting())
            except RecollectError:
                known = None
            self._known = known
        if known is not None:
            _, size, waiting = known
            yield GaugeMetricFamily("recollect_store_bytes", "How large the database is.", value=size)
            yield GaugeMetricFamily("recollect_waiting_vectors", "Texts without a vector yet.", value=waiting)
        problem = 1 if self._recollect.embedder_problem() else 0
        yield GaugeMetricFamily(
            "recollect_embedder_failing", "1 if the embedder failed when last asked.", value=problem
        )


BACKGROUND: Mapping[str, tuple[str, GaugeMode]] = {
    "is_running": ("1 while the thread runs or has had nothing to do.", "livemin"),
    "waiting": ("Owners, keys or texts in the queue.", "livesum"),
    "oldest_seconds": ("How long the first of them that is due has waited.", "livemax"),
    "set_aside": ("Those that failed and let the others pass.", "livesum"),
}
"""Gauges of the background threads, and how those of several processes are merged."""

BACKGROUND_COUNTERS = {"failures": "Writes or passes that failed.", "given_up": "What the store would never take."}


class _BackgroundMetrics:
    """State of each background thread, labelled by its name."""

    def __init__(self, recollect: Recollect, registry: CollectorRegistry) -> None:
        self._recollect = recollect
        self._lock = Lock()
        self._counted: dict[tuple[str, str], float] = {}
        self._gauges = {
            name: Gauge(_background_name(name), text, ["worker"], registry=registry, multiprocess_mode=mode)
            for name, (text, mode) in BACKGROUND.items()
        }
        self._counters = {
            name: Counter(_background_name(name), text, ["worker"], registry=registry)
            for name, text in BACKGROUND_COUNTERS.items()
        }

    def refresh(self) -> None:
        """Read the state of the threads of this process."""
        # Otherwise two scrapes at once could count a failure twice.
        with self._lock:
            for each in self._recollect.background():
                for name, gauge in self._gauges.items():
                    gauge.labels(each.name).set(float(getattr(each, name)))
                for name, counter in self._counters.items():
                    count = float(getattr(each, name))
                    counter.labels(each.name).inc(count - self._counted.get((each.name, name), 0.0))
                    self._counted[each.name, name] = count


def _background_name(name: str) -> str:
    return f"recollect_background_{name.removeprefix('is_')}"


def _forget_dead_processes(folder: Path) -> None:
    """Remove the gauges of processes that have ended; their counters stay."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
