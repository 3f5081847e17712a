"""What a filter costs: recall with one against the same recall without, on 10,000 memories.

A filter lets pass 1 % or 50 % of the memories, or another 1 % in every call. A field is read once; the lines named
`after a write` add a memory before each recall, with a filter and without.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from benchmarks.corpus import NOW, memories, sentences, vectors
from benchmarks.measure import Line, processor_seconds
from benchmarks.recalls import Fixed
from tests.postgres_server import PostgresServer
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import Memory, Owner

MEMORIES = 10_000
GROUPS = 100
QUERIES = 40
TURNS = 7
MOST = 1.3
OWNER = Owner("acme", "atlas")

Where = Callable[[int], str]
"""A filter for the call of this number."""

FILTERS: dict[str, Where] = {
    "no condition that filters (kind exists)": lambda call: "kind exists",
    "tags, 1 %": lambda call: "tags = group-7",
    "tags, 50 %": lambda call: "tags = even",
    "tags, another 1 % each time": lambda call: f"tags = group-{call % GROUPS}",
    "session, 1 %": lambda call: "session_id = s-7",
    "session, another 1 % each time": lambda call: f"session_id = s-{call % GROUPS}",
    "time, 1 %": lambda call: f"created_at >= {(NOW - timedelta(hours=100)).isoformat()}",
    "time, 50 %": lambda call: f"created_at >= {(NOW - timedelta(hours=MEMORIES // 2)).isoformat()}",
    "time, another span each time": lambda call: f"created_at >= {(NOW - timedelta(hours=100 + call)).isoformat()}",
    "metadata, 1 %": lambda call: "metadata.group = 7",
    "metadata, 50 %": lambda call: "metadata.city = 'Oslo'",
    "metadata, another 1 % each time": lambda call: f"metadata.group = {call % GROUPS}",
    "metadata of another text each time": lambda call: f"metadata.order.id >= 'o-{call:05}'",
    "all four": lambda call: "tags = even and session_id != s-7 and metadata.city = Oslo and created < 2026-01-01",
}


def measured(folder: Path) -> Iterator[Line]:
    yield from _compare("SQLite", f"sqlite:///{folder / 'filters.db'}")
    with PostgresServer.start() as server:
        yield from _compare("PostgreSQL", server.create_database(has_tables=True))


def _compare(engine: str, url: str) -> Iterator[Line]:
    settings = Settings(url=url, index_cache_mb=512, recall_deadline=60)
    queries = sentences(QUERIES, seed=9, words=8)
    with Wellkept(settings=settings, embedder=Fixed(), clock=lambda: NOW) as wellkept:
        made = [_describe(each, number) for number, each in enumerate(memories(OWNER, sentences(MEMORIES)))]
        wellkept._store.add_memories(made, list(vectors(MEMORIES)))
        agent = wellkept.agent(OWNER.agent, OWNER.tenant)
        for name, where in FILTERS.items():
            yield _line(f"{engine}: {name}", *_measure(agent, queries, where, is_writing=False))
        for name in ("tags, another 1 % each time", "metadata, another 1 % each time", "all four"):
            yield _line(f"{engine}: {name}, after a write", *_measure(agent, queries, FILTERS[name], is_writing=True))


def _measure(agent: AgentMemory, queries: Sequence[str], where: Where, *, is_writing: bool) -> tuple[float, float]:
    """Return the median processor time of a recall with a filter and of one without, each in its best turn."""
    plain, filtered, call = list[float](), list[float](), 0
    agent.recall(queries[0], sources=["memory"], where=where(0))
    for _ in range(TURNS):
        times: dict[bool, list[float]] = {True: [], False: []}
        for query in queries:
            call += 1
            for is_filtered, measured in times.items():
                if is_writing:
                    agent.remember(f"{query} {call} {is_filtered}", kind="episode", tags=["new"], metadata={"group": 1})
                chosen = where(call) if is_filtered else ""
                work = partial(agent.recall, query, limit=10, sources=["memory"], min_relevance=0, where=chosen)
                measured.append(processor_seconds(work))
        filtered.append(statistics.median(times[True]))
        plain.append(statistics.median(times[False]))
    return min(filtered), min(plain)


def _line(name: str, ours: float, floor: float) -> Line:
    ratio = ours / floor
    return Line(f"recall, {name}", f"{ours * 1000:.2f} ms", f"{floor * 1000:.2f} ms", ratio, "<= 1.3", ratio <= MOST)


def _describe(memory: Memory, number: int) -> Memory:
    group = number % GROUPS
    return replace(
        memory,
        tags=(f"group-{group}", "even" if number % 2 else "odd"),
        session_id=f"s-{group}",
        created_at=NOW - timedelta(hours=MEMORIES - number),
        metadata={"group": group, "city": "Oslo" if number % 2 else "Rome", "order": {"id": f"o-{number:05}"}},
    )
