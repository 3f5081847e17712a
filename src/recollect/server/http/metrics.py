"""Prometheus metrics.

Labels are declared routes, methods and statuses, never ids, tenants or content, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from recollect.api.recollect import Recollect
from recollect.errors import RecollectError

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STORE_EVERY = timedelta(seconds=30)
"""Maximum age of values read from the store, so that frequent scrapes do not load it."""


class Metrics:
    """Metrics of one server."""

    def __init__(self, recollect: Recollect) -> None:
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
        self.under_way = Gauge("recollect_requests_under_way", "Requests that are being worked on.", registry=registry)
        self.failed_keys = Counter("recollect_failed_keys", "Keys and logins that opened nothing.", registry=registry)
        for why in ("rate", "load", "failures", "connections"):
            self.refused.labels(why)
        self.registry.register(_StoreGauges(recollect))
        self.registry.register(_BackgroundGauges(recollect))


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


BACKGROUND = {
    "is_running": "1 while the thread runs or has had nothing to do.",
    "waiting": "Owners, keys or texts in the queue.",
    "oldest_seconds": "How long the first of them that is due has waited.",
    "set_aside": "Those that failed and let the others pass.",
}
BACKGROUND_COUNTERS = {"failures": "Writes or passes that failed.", "given_up": "What the store would never take."}


class _BackgroundGauges(Collector):
    """State of each background thread, labelled by its name."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        workers = self._recollect.background()
        for family, metrics in ((GaugeMetricFamily, BACKGROUND), (CounterMetricFamily, BACKGROUND_COUNTERS)):
            for name, description in metrics.items():
                metric = family(f"recollect_background_{name.removeprefix('is_')}", description, labels=["worker"])
                for each in workers:
                    metric.add_metric([each.name], float(getattr(each, name)))
                yield metric
