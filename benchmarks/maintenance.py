"""How long a write waits while a large store is maintained."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from benchmarks.corpus import DIMENSIONS, NOW, memories, sentences
from benchmarks.measure import Line
from wellkept import Settings, Wellkept
from wellkept.model import Owner
from wellkept.store import open_store

AGENTS = 100
EPISODES_EACH = 10_000
EPISODES = AGENTS * EPISODES_EACH
BATCH = 10_000
QUOTA = 6_000
PAUSE = 0.003  # between two notes
QUIET_SECONDS = 2.0
LONGEST_WAIT = 0.100
TENANT = "acme"


@dataclass
class Writer:
    """Writes one note after the other, and remembers how long each was held up."""

    wellkept: Wellkept
    waits: list[float] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        memory = self.wellkept.agent("writer", TENANT)
        while not self._ended.wait(PAUSE):
            begun = time.perf_counter()
            memory.remember(f"note number {len(self.waits)}")
            self.waits.append(time.perf_counter() - begun)


def measured(folder: Path) -> Iterator[Line]:
    url = f"sqlite:///{folder / 'maintained.db'}"
    _build(url)
    settings = Settings(embedder="off", episode_quota=QUOTA)
    with Wellkept(url, settings=settings, clock=lambda: NOW + timedelta(days=8)) as wellkept:
        with Writer(wellkept) as alone:
            time.sleep(QUIET_SECONDS)
        with Writer(wellkept) as beside:
            begun = time.perf_counter()
            report = wellkept.maintain()
            took = time.perf_counter() - begun
    assert report.archived == AGENTS * (EPISODES_EACH - QUOTA)
    longest, quiet = max(beside.waits), max(alone.waits)
    yield Line(
        f"longest wait of a write while {EPISODES:,} episodes are maintained ({took:.0f} s)",
        f"{longest * 1000:.1f} ms",
        f"{quiet * 1000:.1f} ms (without)",
        longest / quiet,
        f"<= {LONGEST_WAIT * 1000:.0f} ms",
        longest <= LONGEST_WAIT,
    )


def _build(url: str) -> None:
    """Agents whose episodes have partly expired, partly faded, and are partly too many."""
    store = open_store(url, busy_timeout=30, pool_size=1, index_cache_mb=64)
    store.use_embedder("benchmark", DIMENSIONS)
    texts = sentences(EPISODES_EACH)
    for number in range(AGENTS):
        made = memories(Owner(TENANT, f"agent-{number}"), texts)
        aged = [
            replace(
                each,
                importance=0.05 if position % 10 == 0 else 0.3 + position % 7 / 10,
                expires_at=NOW + timedelta(days=7) if position % 4 == 0 else None,
            )
            for position, each in enumerate(made)
        ]
        for start in range(0, EPISODES_EACH, BATCH):
            part = aged[start : start + BATCH]
            store.add_memories(part, [None] * len(part))
    store.close()
