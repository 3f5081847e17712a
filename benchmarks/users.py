"""What one user of an agent costs beside 1, 1,000 and 100,000 users of the same agent.

Each user has ten memories, and a hundred belong to nobody. Timed is the processor time of the caller in public
methods; on PostgreSQL, whose server does a part of the work, the best wall time of several turns. The methods: a recall
whose index is in memory, the first one of a user, one right after another user's write, a listing, a prompt and a new
note.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.corpus import memories, sentences, vectors
from benchmarks.measure import Line
from benchmarks.measure import seconds as wall_seconds
from benchmarks.searches import milliseconds
from tests.postgres_server import PostgresServer
from wellkept import Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import Owner
from wellkept.settings import Settings

CROWDS = (1, 1_000, 100_000)
EACH = 10
SHARED = 100
BATCH = 10_000
ROUNDS = 20
TURNS = 5
MAX_RATIO = 1.5
"""A user among 100,000 may cost this much more than one alone: trees are deeper, and less of the file is cached."""

LEAST = 0.0005
"""Seconds below which a difference is noise of the machine."""


def measured(folder: Path) -> Iterator[Line]:
    yield from _compare("SQLite", lambda crowd: f"sqlite:///{folder}/users-{crowd}.db")
    with PostgresServer.start() as server:
        yield from _compare("PostgreSQL", lambda crowd: server.create_database(has_tables=True), server)


def _compare(engine: str, locate: Callable[[int], str], server: PostgresServer | None = None) -> Iterator[Line]:
    with ExitStack() as stack:
        works: dict[tuple[str, int], Callable[[], None]] = {}
        for crowd in CROWDS:
            url = locate(crowd)
            store = stack.enter_context(Wellkept(settings=Settings(url=url)))
            agent = store.agent("atlas", "acme")
            fill(agent, crowd)
            if server is not None:
                # Done by the server now and then, but not by one for tests.
                with psycopg.connect(server.admin_url(url), autocommit=True) as admin:
                    admin.execute("VACUUM ANALYZE")
            works |= {(name, crowd): work for name, work in list_works(agent, crowd).items()}
        # The first turn fills caches; all take turns, so that a busy moment of the machine meets each of them.
        measure = thread_seconds if server is None else wall_seconds
        times = [[measure(work) for work in works.values()] for _ in range(TURNS)]
        took = dict(zip(works, map(min, zip(*times, strict=True)), strict=True))
    for name, crowd in sorted(works, key=lambda each: [*works].index((each[0], 1))):
        seconds, floor = took[name, crowd] / ROUNDS, took[name, 1] / ROUNDS
        is_met = seconds <= max(MAX_RATIO * floor, floor + LEAST)
        what = f"{engine}: {name}, {crowd:,} user{'s' if crowd > 1 else ''}"
        target = f"<= {MAX_RATIO} x 1 user"
        yield Line(what, milliseconds(seconds), milliseconds(floor), seconds / floor, target, is_met)


def thread_seconds(work: Callable[[], object]) -> float:
    """Processor time of the calling thread: other programs, and marks written in the background, do not count."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def fill(agent: AgentMemory, crowd: int) -> None:
    """Add ten memories for each user, and a hundred for nobody, without embedding them one by one."""
    store, owner = agent._store, Owner("acme", "atlas")
    texts, matrix = sentences(BATCH), list(vectors(BATCH))
    store.add_memories(memories(owner, texts[:SHARED]), matrix[:SHARED])
    names = (f"u-{number % crowd}" for number in range(crowd * EACH))
    for start in range(0, crowd * EACH, BATCH):
        size = min(BATCH, crowd * EACH - start)
        rows = [replace(each, user=next(names)) for each in memories(owner, texts[:size])]
        store.add_memories(rows, matrix[:size])


def list_works(agent: AgentMemory, crowd: int) -> dict[str, Callable[[], None]]:
    queries, fresh, notes = sentences(ROUNDS, seed=9, words=8), count(), count()
    one = agent.for_user("u-0")

    def other() -> AgentMemory:
        """A user whose index is not in memory."""
        agent._store.forget_cached("acme")
        return agent.for_user(f"u-{next(fresh) % crowd}")

    def recall_warm() -> None:
        for query in queries:
            one.recall(query, sources=["memory"], min_relevance=0)

    def recall_first() -> None:
        for query in queries:
            other().recall(query, sources=["memory"], min_relevance=0)

    def recall_after_write() -> None:
        for query in queries:
            agent.remember(f"Note {next(notes)} of another user", user="somebody-else")
            one.recall(query, sources=["memory"], min_relevance=0)

    def list_newest() -> None:
        for _ in queries:
            assert len(one.list(limit=20)) == 20

    def build_prompt() -> None:
        for query in queries:
            one.context(query, session="s-0")

    def remember() -> None:
        for _ in queries:
            one.remember(f"Note {next(notes)} of this user")

    return {
        "recall": recall_warm,
        "first recall of a user": recall_first,
        "recall after another user's write": recall_after_write,
        "list 20": list_newest,
        "context": build_prompt,
        "remember": remember,
    }
