"""What the server has done, counted for Prometheus.

Labels are routes as the table of scopes writes them, methods and statuses: never an id, a tenant or a word of anybody's
text, and never more of them than there are routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.api.recollect import Recollect
from recollect.errors import RecollectError
from recollect.server.errors import METHODS
from recollect.server.scopes import UNKNOWN_PATH

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STORE_EVERY = timedelta(seconds=30)
"""What is asked of the store is at most so old: a scrape costs it next to nothing."""


class Metrics:
    """The counters of one server."""

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
    """What the store says about itself. A store that does not answer is not in the answer."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect
        self._known: tuple[datetime, int, int] | None = None

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # so that nothing is asked of the store when this is registered

    def collect(self) -> Iterator[GaugeMetricFamily]:
        # Looked up once: another scrape may forget it meanwhile.
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
    """The state of the background threads, by the name of each."""

    def __init__(self, recollect: Recollect) -> None:
        self._recollect = recollect

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        workers = self._recollect.background()
        for family, told in ((GaugeMetricFamily, BACKGROUND), (CounterMetricFamily, BACKGROUND_COUNTERS)):
            for name, says in told.items():
                metric = family(f"recollect_background_{name.removeprefix('is_')}", says, labels=["worker"])
                for each in workers:
                    metric.add_metric([each.name], float(getattr(each, name)))
                yield metric


class Measured:
    """Counts every request that is answered."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock, status = asyncio.get_running_loop().time, 500
        begun = clock()

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        state = scope.setdefault("state", {})
        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._metrics.under_way.dec()
            method = scope["method"] if scope["method"] in METHODS else "other"
            counted, timed = self._counters(method, state.get("route", UNKNOWN_PATH), status)
            counted.inc()
            timed.observe(clock() - begun)
            if "refused" in state:
                self._metrics.refused.labels(state["refused"]).inc()

    def _counters(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """Of one kind of request; finding them takes longer than counting."""
        found = self._known.get((method, route, status))
        if found is None:
            found = self._known[method, route, status] = (
                self._metrics.requests.labels(method, route, str(status)),
                self._metrics.seconds.labels(method, route),
            )
        return found
