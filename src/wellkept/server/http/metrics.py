"""Prometheus metrics.

Labels are declared routes, methods, statuses and names of this program's own parts, never ids, tenants or content, so
their number is bounded. All but those of the store are `prometheus_client`'s own objects, which are safe for threads
and are merged over worker processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from wellkept.api.wellkept import Wellkept
from wellkept.errors import WellkeptError
from wellkept.meter import Meter
from wellkept.model import Source, StoreReport

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOKEN_BUCKETS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
GaugeMode = Literal["livemin", "livemax", "livesum"]
STORE_EVERY = timedelta(seconds=30)
"""Maximum age of values read from the store, so that frequent scrapes do not load it."""


EMBEDDER = "embedder"
VERBS, OUTCOMES = ("recall", "context"), ("found", "empty")
STEPS = ("fold", "drop", "reference")
ACTIONS = ("reject", "redact", "flag")
INDEX_OUTCOMES = ("hit", "extended", "compared", "loaded", "database")


class Metrics(Meter):
    """Metrics of one server."""

    def __init__(self, wellkept: Wellkept, shared: Path | None = None) -> None:
        """Create the metrics; those of worker processes that name the same folder `shared` are merged."""
        self._shared = shared
        self.registry = registry = CollectorRegistry()
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self.requests = counter("wellkept_requests", "Requests answered.", ["method", "route", "status"])
        self.seconds = histogram(
            "wellkept_request_seconds", "How long answers took.", ["method", "route"], buckets=BUCKETS
        )
        self.refused = counter(
            "wellkept_refused",
            "Requests refused because there were too many: of one key, in all, after wrong keys, or connections.",
            ["why"],
        )
        self.under_way = Gauge(
            "wellkept_requests_under_way",
            "Requests that are being worked on.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.failed_keys = counter("wellkept_failed_keys", "Keys and logins that opened nothing.")
        for why in ("rate", "load", "failures", "connections"):
            self.refused.labels(why)
        self._add_recall_metrics(counter, histogram)
        self._add_prompt_metrics(counter, histogram)
        self._store = _StoreGauges(wellkept)
        self._background = _BackgroundMetrics(wellkept, registry)

    @property
    def is_shared(self) -> bool:
        """True if other worker processes read these metrics."""
        return self._shared is not None

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

    def _add_recall_metrics(self, counter: Callable[..., Counter], histogram: Callable[..., Histogram]) -> None:
        sources = [*(each.value for each in Source), EMBEDDER]
        recalls = counter("wellkept_recalls", "Recalls, by verb and by what they found.", ["verb", "outcome"])
        # Children are made once: looking one up takes longer than counting, and a scrape shows those that are 0.
        self._recalls = {(verb, outcome): recalls.labels(verb, outcome) for verb in VERBS for outcome in OUTCOMES}
        seconds = histogram(
            "wellkept_recall_source_seconds", "Time a recall spent on a source.", ["source"], buckets=BUCKETS
        )
        self._source_seconds = {name: seconds.labels(name) for name in sources}
        unanswered = counter(
            "wellkept_recall_unanswered",
            "Sources that failed or did not answer in time, so that a recall went on without them.",
            ["source"],
        )
        self._unanswered = {name: unanswered.labels(name) for name in sources}
        lookups = counter(
            "wellkept_index_lookups",
            "Searches of an index in memory as it was, with rows added or compared with the store; indexes loaded; and "
            "searches in the database.",
            ["outcome"],
        )
        evicted = counter("wellkept_index_evictions", "Search indexes dropped to stay within index_cache_mb.")
        self._lookups = {name: lookups.labels(name) for name in INDEX_OUTCOMES} | {"evicted": evicted}

    def _add_prompt_metrics(self, counter: Callable[..., Counter], histogram: Callable[..., Histogram]) -> None:
        self._prompt_tokens = histogram("wellkept_prompt_tokens", "Tokens of assembled prompts.", buckets=TOKEN_BUCKETS)
        self._removed = counter("wellkept_prompt_tokens_removed", "Tokens taken out of prompts to fit the budget.")
        self._truncated = counter("wellkept_prompts_truncated", "Prompts that had to be shortened to fit the budget.")
        truncations = counter("wellkept_prompt_truncations", "Steps that shortened prompts.", ["step"])
        self._truncations = {step: truncations.labels(step) for step in STEPS}
        secrets = counter("wellkept_secrets", "Texts that seemed to hold a secret, by what was done.", ["action"])
        self._secrets = {action: secrets.labels(action) for action in ACTIONS}

    def count_recall(self, verb: str, *, is_empty: bool) -> None:
        self._recalls[verb, OUTCOMES[is_empty]].inc()

    def time_source(self, source: str, seconds: float, *, has_answered: bool) -> None:
        self._source_seconds[source].observe(seconds)
        if not has_answered:
            self._unanswered[source].inc()

    def count_prompt(self, tokens: int, removed: int) -> None:
        self._prompt_tokens.observe(tokens)
        if removed:
            self._removed.inc(removed)
            self._truncated.inc()

    def count_truncation(self, step: str) -> None:
        self._truncations[step].inc()

    def count_secret(self, action: str) -> None:
        self._secrets[action].inc()

    def count_index(self, outcome: str) -> None:
        self._lookups[outcome].inc()


class _StoreGauges(Collector):
    """Size of the store, texts without a vector and memories; left out while the store does not answer."""

    def __init__(self, wellkept: Wellkept) -> None:
        self._wellkept = wellkept
        self._known: tuple[datetime, StoreReport] | None = None

    def describe(self) -> list[GaugeMetricFamily]:
        # Registering must not query the store.
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        # Read once: a concurrent scrape may reset it.
        wellkept, now, known = self._wellkept, self._wellkept.now(), self._known
        if known is None or not timedelta() <= now - known[0] < STORE_EVERY:
            try:
                known = (now, wellkept.maintenance.read_totals())
            except WellkeptError:
                known = None
            self._known = known
        if known is not None:
            yield from _describe_store(known[1])
        problem = 1 if wellkept.embedding.problem else 0
        yield GaugeMetricFamily("wellkept_embedder_failing", "1 if the embedder failed when last asked.", value=problem)


def _describe_store(known: StoreReport) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily("wellkept_store_bytes", "How large the database is.", value=known.bytes)
    yield GaugeMetricFamily("wellkept_waiting_vectors", "Texts without a vector yet.", value=known.waiting)
    counted = "Memories of all tenants, as the last maintenance counted them."
    memories = GaugeMetricFamily("wellkept_memories", counted, labels=["kind", "state"])
    for (kind, state), count in known.memories.items():
        memories.add_metric([kind.value, state.value], count)
    yield memories
    if known.last is not None:
        ended = "When the last maintenance of the whole store ended, in seconds since 1970."
        at, failed = known.last.at.timestamp(), "1 if the last maintenance failed."
        yield GaugeMetricFamily("wellkept_maintenance_timestamp_seconds", ended, value=at)
        yield GaugeMetricFamily("wellkept_maintenance_failed", failed, value=bool(known.last.error))


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

    def __init__(self, wellkept: Wellkept, registry: CollectorRegistry) -> None:
        self._wellkept = wellkept
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
            for each in self._wellkept.background():
                for name, gauge in self._gauges.items():
                    gauge.labels(each.name).set(float(getattr(each, name)))
                for name, counter in self._counters.items():
                    count = float(getattr(each, name))
                    counter.labels(each.name).inc(count - self._counted.get((each.name, name), 0.0))
                    self._counted[each.name, name] = count


def _background_name(name: str) -> str:
    return f"wellkept_background_{name.removeprefix('is_')}"


def _forget_dead_processes(folder: Path) -> None:
    """Remove the gauges of processes that have ended; their counters stay."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
