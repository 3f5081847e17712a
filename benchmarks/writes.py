"""What a durable write costs: alone, from sixteen threads, and ten thousand at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from benchmarks.corpus import DIMENSIONS, memories, sentences, vectors
from benchmarks.floors import BareSqlite
from benchmarks.measure import Line, best_of_turns, seconds
from recollect.model import Memory, Owner
from recollect.ports import Vector
from recollect.store import open_store
from recollect.store.sqlstore import SqlStore

OWNER = Owner("acme", "atlas")
WARM = 2_000
PER_TURN = 300
TURNS = 7
THREADS = 16
BULK = 10_000


def measured(folder: Path) -> Iterator[Line]:
    texts = sentences(BULK)
    store = open_store(f"sqlite:///{folder / 'ours.db'}", busy_timeout=30, pool_size=1, index_cache_mb=64)
    store.use_embedder("benchmark", DIMENSIONS)
    floor = BareSqlite(folder / "floor.db")
    ready = list(zip(memories(OWNER, texts), vectors(BULK), strict=True))  # embedding is not part of the question
    store.add_memories([memory for memory, _ in ready[:WARM]], [vector for _, vector in ready[:WARM]])
    floor.add_many(texts[:WARM])
    one, alone, sixteen = _adds(store, floor, ready, texts)
    yield Line("one durable add", _rate(one), _rate(alone), one / alone, "<= 1.30", one <= 1.30 * alone)
    yield Line(
        f"{THREADS} threads adding, against one", _rate(sixteen), _rate(one), one / sixteen, ">= 5", one >= 5 * sixteen
    )
    bulk = min(_bulk(store, ready) for _ in range(3)) / BULK
    yield Line(
        f"add_many of {BULK:,}, against one by one", _rate(bulk), _rate(one), one / bulk, ">= 20", one >= 20 * bulk
    )
    store.close()
    floor.close()


def _adds(
    store: SqlStore, floor: BareSqlite, ready: list[tuple[Memory, Vector]], texts: list[str]
) -> tuple[float, float, float]:
    """Seconds per add: ours alone, the floor's, and ours from many threads."""
    ours, bare = cycle(ready), cycle(texts)

    def add_ours() -> None:
        for _ in range(PER_TURN):
            store.add_memory(*next(ours))

    def add_bare() -> None:
        for _ in range(PER_TURN):
            floor.add(next(bare))

    def add_from_threads() -> None:
        threads = [
            threading.Thread(target=_add_share, args=(store, ready[number::THREADS])) for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    one, alone, sixteen = best_of_turns([add_ours, add_bare, add_from_threads], turns=TURNS)
    return one / PER_TURN, alone / PER_TURN, sixteen / (PER_TURN * THREADS)


def _add_share(store: SqlStore, ready: list[tuple[Memory, Vector]]) -> None:
    for memory, vector in ready[:PER_TURN]:
        store.add_memory(memory, vector)


def _bulk(store: SqlStore, ready: list[tuple[Memory, Vector]]) -> float:
    batch, matrix = [memory for memory, _ in ready], [vector for _, vector in ready]
    return seconds(lambda: store.add_memories(batch, matrix))


def _rate(seconds_each: float) -> str:
    return f"{1 / seconds_each:,.0f}/s"
