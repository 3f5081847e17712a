"""What is held in memory for searching, while others write: several stores on one database, as several processes are.

Each store has caches of its own and hears of the others' writes only through the database.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import Place, hold_indexes
from tests.conformance.examples import (
    DIMENSIONS,
    EMBEDDER,
    LATER,
    NOW,
    document,
    nearest_chunks,
    note,
    owner,
    search_chunks,
    vector,
)
from tests.waiting import eventually
from wellkept.errors import Conflict, NotFound, StoreBusy
from wellkept.language.text import terms
from wellkept.model import Kind, Memory, Owner
from wellkept.store.search import memory_search
from wellkept.store.sqlstore import SqlStore


@pytest.fixture
def stores(lasting_place: Place) -> Iterator[Callable[[], SqlStore]]:
    """Opens a store as another process would."""
    with ExitStack() as opened:

        def another() -> SqlStore:
            store = lasting_place.open()
            opened.callback(store.close)
            store.use_embedder(EMBEDDER, DIMENSIONS)
            hold_indexes(store)
            return store

        yield another


def found(store: SqlStore, ann: Owner, word: str = "apples") -> set[int]:
    """The numbers of what a search finds."""
    return {match.seq for match in store.search_memories(ann, word, kinds=tuple(Kind), now=NOW, limit=100_000)}


def weighed(store: SqlStore, ann: Owner) -> set[int]:
    """The numbers of what recall sees."""
    evidence = store.weigh_memories(ann, terms("apples"), None, kinds=tuple(Kind), now=NOW)
    assert len(evidence.occurrences[0][0]) <= len(evidence.seqs)
    return set(evidence.seqs.tolist())


def everything(store: SqlStore, ann: Owner) -> tuple[Any, ...]:
    """All that a search can tell."""
    evidence = store.weigh_memories(ann, terms("apples pears"), vector(1), kinds=tuple(Kind), now=NOW)
    assert evidence.cosines is not None
    order = evidence.seqs.argsort()
    words = [
        sorted(zip(evidence.seqs[rows].tolist(), counts.tolist(), strict=True)) for rows, counts in evidence.occurrences
    ]
    columns = (evidence.seqs, evidence.lengths, evidence.since, evidence.speakers)
    told = [column[order].tolist() for column in columns]
    listed = [memory.id for memory in store.list_memories(ann, needle="pp", now=NOW, limit=1000)]
    return told, evidence.cosines[order].round(3).astype(str).tolist(), words, listed


def interleaved(write: Callable[[int], None], *searches: Callable[[], None]) -> None:
    """Three writers, and beside them each search again and again until they are done. Nobody begins alone."""
    done, gate = threading.Event(), threading.Barrier(3 + len(searches), timeout=100)

    def begin(number: int) -> None:
        gate.wait()
        write(number)

    def search(once: Callable[[], None]) -> None:
        gate.wait()
        once()
        while not done.is_set():
            once()

    with ThreadPoolExecutor(3 + len(searches)) as threads:
        searching = [threads.submit(search, once) for once in searches]
        try:
            list(threads.map(begin, range(3)))
        finally:
            done.set()
        for each in searching:
            each.result()


def test_nothing_committed_is_ever_missed_however_commits_and_searches_interleave(
    stores: Callable[[], SqlStore], ann: Owner
) -> None:
    """What was answered before a search began is found by it, in every process; what was removed before is not."""
    writers, readers = [stores() for _ in range(3)], [stores() for _ in range(2)]
    there: set[int] = set()
    gone: set[int] = set()

    def write(number: int) -> None:
        store, choose = writers[number], random.Random(number)
        for _ in range(25):
            count = choose.randrange(1, 4)
            mine = store.add_memories([note("apples", ann) for _ in range(count)], [None] * count)
            numbers = [int(each.id.removeprefix("m-")) for each in mine]
            there.update(numbers)
            if choose.random() < 0.3:
                there.discard(numbers[0])
                store.delete_memory(ann, mine[0].id)
                gone.add(numbers[0])
            elif choose.random() < 0.3:
                store.update_memory(replace(mine[0], text="apples again"), replaced_at=NOW)

    def search(store: SqlStore, numbers_in: Callable[[SqlStore, Owner], set[int]]) -> None:
        # In this order: a number may leave the first set before it joins the second, never the other way round.
        before_gone, before_there = set(gone), set(there)
        hits = numbers_in(store, ann)
        assert not before_gone & hits
        assert {each for each in before_there - hits if each in there} == set()

    interleaved(write, *(partial(search, store, way) for store in readers for way in (found, weighed)))
    for store in (*readers, *writers):
        assert found(store, ann) == weighed(store, ann) == there


def test_a_transaction_that_began_first_and_commits_last_is_not_passed_over(
    place: Place, stores: Callable[[], SqlStore], ann: Owner
) -> None:
    """Numbers are given in the order of commits: who has one makes the next wait until it is in the database."""
    slow, quick, reader = stores(), stores(), stores()
    reader.add_memory(note("apples", ann))
    assert found(reader, ann) == {1}
    holds, may_commit = threading.Event(), threading.Event()

    def slowly() -> None:
        slow.add_memory(note("apples", ann))
        holds.set()
        assert may_commit.wait(100)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(slow.transaction, ann.tenant, slowly)
        assert holds.wait(100)
        try:
            assert found(reader, ann) == {1}
            second = threads.submit(quick.add_memory, note("apples", ann))
            if place.name.startswith("postgres"):
                wait_for_a_waiting_writer(place.url)
            assert found(reader, ann) == {1}
            assert not second.done()
        finally:
            may_commit.set()
        first.result()
        assert 2 in found(reader, ann)
        assert second.result().id == "m-3"
    assert found(reader, ann) == {1, 2, 3}


def wait_for_a_waiting_writer(url: str) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND query LIKE 'UPDATE agents%'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        eventually(lambda: connection.execute(waiting).fetchone() != (0,))


def test_what_is_taken_back_leaves_no_trace_in_what_is_held(stores: Callable[[], SqlStore], ann: Owner) -> None:
    writer, reader = stores(), stores()
    writer.add_memory(note("apples", ann))
    assert found(reader, ann) == {1}

    def fail() -> None:
        writer.add_memory(note("apples that never were", ann))
        raise NotFound("on second thoughts")

    with pytest.raises(NotFound):
        writer.transaction(ann.tenant, fail)
    assert found(reader, ann) == {1}
    writer.add_memory(note("pears", ann))  # under the number that was given back

    assert found(reader, ann) == {1}
    assert found(reader, ann, "pears") == {2}


@pytest.mark.parametrize("seed", range(2))
def test_what_is_held_equals_what_is_stored_whatever_happened_elsewhere(
    stores: Callable[[], SqlStore], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_search, "BATCH", 7)
    ann, choose = owner("ann"), random.Random(seed)
    writer, reader, forgetful = stores(), stores(), stores()
    writer.add_memories([note(f"apples {number}", ann) for number in range(20)], [vector(1)] * 20)
    kept: list[tuple[str, dict[str, Any]]] = []

    def some() -> Memory:
        return choose.choice(writer.list_memories(ann, now=NOW, state=None, limit=500))

    def change(**changes: Any) -> None:
        writer.update_memory(replace(some(), **changes), vector(0, 1), replaced_at=NOW)

    def export() -> None:
        kept.clear()
        writer.export_rows(ann.tenant, lambda table, row: kept.append((table, row)))

    def bring_back() -> None:
        for table, row in kept:
            if table == "memories":
                said = {**row, "text": choose.choice(["apples", "pears"])}
                writer.import_rows(ann.tenant, table, [said], now=NOW, vectors=[choose.choice([None, vector(1)])])

    deeds: list[Callable[[], object]] = [
        lambda: writer.add_memory(note("apples and pears", ann), choose.choice([None, vector(1)])),
        lambda: writer.add_memories([note("pears", ann, kind=Kind.EPISODE, session_id="s")] * 9, [None] * 9),
        lambda: change(text="pears"),
        lambda: change(held_at=NOW),
        lambda: change(held_at=None),
        lambda: change(valid_to=choose.choice([None, NOW, LATER])),
        lambda: change(archived_at=NOW),
        lambda: writer.delete_memory(ann, some().id),
        lambda: writer.prune_memories(ann, Kind.NOTE, keep=15),
        lambda: writer.set_vectors(
            ann.tenant, [(each, vector(0, 0, 1)) for each in writer.list_unembedded(ann.tenant, limit=3)]
        ),
        export,
        bring_back,
        lambda: writer.delete_agent(ann) if choose.random() < 0.2 else None,
    ]
    for _ in range(25):
        for _ in range(choose.randrange(1, 4)):
            try:
                choose.choice(deeds)()
            except (Conflict, NotFound, IndexError):
                writer.add_memory(note("apples", ann))
        forgetful.forget_cached(ann.tenant)
        assert everything(reader, ann) == everything(forgetful, ann) == everything(writer, ann)


def test_a_number_that_comes_back_with_another_text_is_read_anew(stores: Callable[[], SqlStore], ann: Owner) -> None:
    writer, reader = stores(), stores()
    writer.add_memory(note("apples", ann))
    rows: list[dict[str, Any]] = []
    writer.export_rows(ann.tenant, lambda table, row: rows.append(row) if table == "memories" else None)
    assert found(reader, ann) == found(writer, ann) == {1}
    writer.delete_memory(ann, "m-1")
    writer.import_rows(ann.tenant, "memories", [{**rows[0], "text": "pears"}], now=NOW, vectors=[None])

    for store in (reader, writer):
        assert (found(store, ann), found(store, ann, "pears")) == (set(), {1})


def test_an_agent_made_anew_is_another_one_in_every_process(stores: Callable[[], SqlStore], ann: Owner) -> None:
    writer, reader = stores(), stores()
    for text in ("apples", "pears", "apples"):  # as many changes each time: only its life tells them apart
        writer.add_memory(note(text, ann))
        other = "pears" if text == "apples" else "apples"
        assert (found(reader, ann, text), found(reader, ann, other)) == ({1}, set())
        writer.delete_agent(ann)
        if text == "pears":  # once the reader sees that the agent is gone, once it does not
            assert found(reader, ann, text) == set()


def test_nothing_of_what_was_erased_stays_in_the_memory_of_another_process(
    stores: Callable[[], SqlStore], ann: Owner
) -> None:
    writer, reader = stores(), stores()
    writer.add_memories([note("apples", ann) for _ in range(50)], [vector(1)] * 50)
    writer.put_document(document("d", ann.tenant), ["apples"] * 50, [vector(1)] * 50)
    traces = [
        next(each for each in writer.list_traces(ann.tenant, table, agent=ann.agent) if each.key[-1] == 7)
        for table in ("memories", "kb_chunks")
    ]
    assert len(found(reader, ann)) == len(search_chunks(reader, ann.tenant, "apples", limit=100)) == 50
    writer.erase_traces(ann.tenant, traces, [])

    assert len(found(reader, ann)) == len(search_chunks(reader, ann.tenant, "apples", limit=100)) == 49
    held = reader._engine.index._indexes._cached
    kept = [cached.held.index for shelf, cached in held.items() if shelf.tenant == ann.tenant]
    assert [(index.count, 7 in index.seqs) for index in kept] == [(49, False)] * 2


def test_nobody_is_shown_what_is_held_of_another_tenant(stores: Callable[[], SqlStore], ann: Owner) -> None:
    store, stranger = stores(), owner("ann")
    store.add_memory(note("apples", ann), vector(1))
    for _ in range(2):
        assert found(store, ann) == {1}
        assert found(store, stranger) == set()
        assert found(store, Owner(ann.tenant, "bob")) == set()


def test_an_index_that_could_not_be_read_to_the_end_is_read_again(
    stores: Callable[[], SqlStore], ann: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_search, "BATCH", 4)
    writer, reader = stores(), stores()
    writer.add_memories([note("apples", ann) for _ in range(10)], [None] * 10)
    append, calls = memory_search.OwnerIndex.append, []

    def failing(index: memory_search.OwnerIndex, rows: Any) -> None:
        calls.append(rows)
        if len(calls) == 2:
            raise StoreBusy("The database is busy. Try again.", retry_after=1)
        append(index, rows)

    monkeypatch.setattr(memory_search.OwnerIndex, "append", failing)
    with pytest.raises(StoreBusy):
        found(reader, ann)
    writer.delete_memory(ann, "m-2")

    assert found(reader, ann) == set(range(1, 11)) - {2}


def test_passages_are_seen_by_every_process_as_soon_as_they_are_stored(
    stores: Callable[[], SqlStore], ann: Owner
) -> None:
    tenant, writers, readers = ann.tenant, [stores() for _ in range(3)], [stores() for _ in range(2)]
    there: dict[str, str] = {}  # the word that finds a document's passages

    def hits(store: SqlStore, word: str) -> int:
        return len(search_chunks(store, tenant, word, limit=100))

    def write(number: int) -> None:
        store, id = writers[number], f"d{number}"
        for turn in range(12):
            word = f"word{number}x{turn}"
            there.pop(id, None)
            store.put_document(document(id, tenant), [f"{word} one", f"{word} two", "ever the same"], [vector(1)] * 3)
            there[id] = word
            if turn % 5 == 4:
                there.pop(id)
                store.delete_document(tenant, id)

    def search(store: SqlStore) -> None:
        for id, word in list(there.items()):
            found = hits(store, word)
            assert found == 2 or there.get(id) != word

    interleaved(write, *(partial(search, store) for store in readers))
    for store in (*readers, *writers):
        assert [hits(store, word) for word in there.values()] == [2] * len(there)
        assert hits(store, "ever same") == len(nearest_chunks(store, tenant, vector(1), limit=100)) - 2 * len(there)
        assert hits(store, "ever same") == 3
