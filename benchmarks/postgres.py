"""What a search costs on PostgreSQL: when nothing changed, after another process wrote, and the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.corpus import DIMENSIONS, NOW, memories, sentences, vectors
from benchmarks.floors import bare_nearest
from benchmarks.measure import Line, seconds
from benchmarks.searches import LIMIT, OWN, milliseconds, searched
from tests.postgres_server import PostgresServer
from wellkept.model import Owner
from wellkept.store import open_store
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.sqlstore import SqlStore

OWNER = Owner("acme", "atlas")
TURNS = 60
MOST = 3.0


class BarePostgres:
    """The least any search has to ask: a row that tells whether something changed, then the rows it returns."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._matrix, self._vector = vectors(OWN), vectors(1)[0]

    def search(self) -> None:
        self._asked("SELECT revision FROM agents WHERE tenant_id = 'acme' AND id = 'atlas'")
        found = bare_nearest(self._matrix, self._vector, 2 * LIMIT)
        self._asked("SELECT * FROM memories WHERE tenant_id = 'acme' AND agent_id = 'atlas' AND seq = ANY(%s)", found)

    def compare(self) -> None:
        """The same, after looking what every row's version is."""
        self._asked(
            "SELECT seq, version, embedder_id FROM memory_index WHERE tenant_id = 'acme' AND agent_id = 'atlas'"
        )
        self.search()

    def load(self) -> None:
        """The same, after reading the whole index."""
        self._asked("SELECT * FROM memory_index WHERE tenant_id = 'acme' AND agent_id = 'atlas'")
        self.search()

    def close(self) -> None:
        self._connection.close()

    def _asked(self, query: str, *numbers: Any) -> None:
        with self._connection.transaction():
            self._connection.execute(f"SET LOCAL {TENANT_SETTING} = 'acme'")
            self._connection.execute(query, [each.tolist() for each in numbers]).fetchall()


def measured(folder: Path) -> Iterator[Line]:
    with PostgresServer.start() as server:
        url = server.create_database()
        store, other, floor = _opened(url), _opened(url), BarePostgres(url)
        for start in range(0, OWN, 1000):
            store.add_memories(
                memories(OWNER, sentences(OWN)[start : start + 1000]), list(vectors(OWN)[start : start + 1000])
            )
        query, vector = sentences(1, seed=9, words=8)[0], vectors(1, seed=10)[0]

        def ours() -> None:
            assert searched(store, query, vector)

        def append() -> None:
            other.add_memories(memories(OWNER, sentences(1)), [vector])

        def edit() -> None:
            one = other.get_memory(OWNER, "m-77")
            other.update_memory(replace(one, text=f"{one.text} again"[-500:]), vector, replaced_at=NOW)

        ours()
        yield _line("search on PostgreSQL", ours, floor.search, before=_nothing, turns=TURNS)
        yield _line("the same after another's append", ours, floor.search, before=append, turns=TURNS)
        yield _line("the same after another's edit", ours, floor.compare, before=edit, turns=TURNS)
        yield _line(
            "the same for the first time", ours, floor.load, before=lambda: store.forget_cached("acme"), turns=5
        )
        for each in (store, other, floor):
            each.close()
        server.drop_database(url)


def _line(
    what: str, ours: Callable[[], None], floor: Callable[[], None], *, before: Callable[[], object], turns: int
) -> Line:
    """Each turn's floor is measured right beside it, and the best of each counts."""
    times = []
    for _ in range(turns):
        before()
        times.append((seconds(ours), seconds(floor)))
    took, least = (min(column) for column in zip(*times, strict=True))
    return Line(what, milliseconds(took), milliseconds(least), took / least, f"<= {MOST:g}", took <= MOST * least)


def _opened(url: str) -> SqlStore:
    store = open_store(url, busy_timeout=30, pool_size=2, index_cache_mb=512)
    store.use_embedder("benchmark", DIMENSIONS)
    return store


def _nothing() -> None:
    """Nobody wrote."""
