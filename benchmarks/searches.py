"""What a search costs: among ten thousand memories, beside few and many other agents, and right after opening."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpus import DIMENSIONS, NOW, memories, sentences, vectors
from benchmarks.floors import BareSqlite, bare_nearest
from benchmarks.measure import Line, best_of_turns, seconds
from wellkept.model import Kind, Owner
from wellkept.model.stored import Vector
from wellkept.recall import rules_matching as matching
from wellkept.recall.rules_question import ParsedQuery
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore

OWN = 10_000
OTHERS = 100  # memories of each other agent
CROWDS = (1, 100, 1_000)
LARGE = 100_000
QUERIES = 50
TURNS = 5
LIMIT = 10
FIRST_SEARCH_SECONDS = 0.5


def measured(folder: Path) -> Iterator[Line]:
    texts, matrix = sentences(OWN), vectors(OWN)
    floor = BareSqlite(folder / "floor-search.db")
    floor.add_many(texts)
    store = _opened(folder / "search.db")
    store.add_memories(memories(Owner("acme", "atlas"), texts), list(matrix))
    queries, wanted = sentences(QUERIES, seed=9, words=8), vectors(QUERIES, seed=10)

    def ours() -> None:
        for query, vector in zip(queries, wanted, strict=True):
            found = searched(store, query, vector)
            assert len(found) <= 2 * LIMIT

    def bare() -> None:
        for query, vector in zip(queries, wanted, strict=True):
            floor.search(query, LIMIT)
            bare_nearest(matrix, vector, LIMIT)

    made = 1
    for crowd in CROWDS:
        _add_others(store, made, crowd)
        made = crowd
        ours()  # loads the index
        took, least = (total / QUERIES for total in best_of_turns([ours, bare], turns=TURNS))
        name = f"search in {OWN:,} memories, {crowd:,} agent{'s' if crowd > 1 else ''}"
        yield Line(name, milliseconds(took), milliseconds(least), took / least, "<= 3", took <= 3 * least)
    store.close()
    floor.close()
    yield _first_search(folder)


def _first_search(folder: Path) -> Line:
    """A store with 100,000 memories of one agent, opened anew: how long until the first answer."""
    path, texts = folder / "large.db", sentences(LARGE)
    store = _opened(path)
    for start in range(0, LARGE, OWN):
        part = texts[start : start + OWN]
        store.add_memories(memories(Owner("acme", "atlas"), part), list(vectors(OWN, seed=start)))
    store.close()
    vector = vectors(1)[0]

    def open_and_search() -> None:
        fresh = _opened(path)
        searched(fresh, texts[0], vector)
        fresh.close()

    took = min(seconds(open_and_search) for _ in range(3))
    least = seconds(path.read_bytes)
    return Line(
        f"first search after opening {LARGE:,}",
        milliseconds(took),
        milliseconds(least) + " (reading the file)",
        took / least,
        f"<= {FIRST_SEARCH_SECONDS} s",
        took <= FIRST_SEARCH_SECONDS,
    )


def _opened(path: Path) -> SqlStore:
    store = open_store(f"sqlite:///{path}", busy_timeout=30, pool_size=1, index_cache_mb=512)
    store.use_embedder("benchmark", DIMENSIONS)
    return store


def searched(store: SqlStore, query: str, vector: Vector) -> dict[int, object]:
    """What recall does: everything weighed, the best ten and the records behind them."""
    owner, asked = Owner("acme", "atlas"), ParsedQuery.read(query, NOW)
    evidence = store.weigh_memories(owner, asked.lookups, vector, kinds=tuple(Kind), now=NOW)
    found = matching.find_best(evidence, asked, limit=2 * LIMIT)
    return dict(store.find_memories(owner, list(found)))


def _add_others(store: SqlStore, made: int, crowd: int) -> None:
    texts, matrix = sentences(OTHERS, seed=7), list(vectors(OTHERS, seed=7))
    for number in range(made, crowd):
        owner = Owner(f"tenant-{number % 50}", f"agent-{number}")
        store.add_memories(memories(owner, texts), matrix)


def milliseconds(seconds_each: float) -> str:
    return f"{seconds_each * 1000:.2f} ms"
