"""Reads that share one snapshot, and reads that have only so much time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.conformance.conftest import Place, hold_indexes
from tests.conformance.examples import NOW, event, note
from tests.waiting import LIMIT
from wellkept.deadline import hold_in_time, limit_reads
from wellkept.errors import NotFound, StoreError, StoreTimeout
from wellkept.language.text import terms
from wellkept.model import Kind, Owner
from wellkept.store.engine import Unit
from wellkept.store.search import memory_search
from wellkept.store.sqlstore import SqlStore


def found(store: SqlStore, ann: Owner) -> int:
    """Count what searches find, by every way that keeps something in memory."""
    hits = store.search_memories(ann, "apples", kinds=tuple(Kind), now=NOW, limit=1000)
    weighed = store.weigh_memories(ann, terms("apples"), None, kinds=tuple(Kind), now=NOW)
    assert len(hits) == len(weighed.seqs)
    return len(hits)


def elsewhere(work: Callable[[], object]) -> None:
    """Do it on another thread, where nothing is shared."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(LIMIT)


def test_reads_share_a_snapshot_and_searches_find_nothing_that_is_not_in_it(
    lasting_place: Place, store: SqlStore, ann: Owner
) -> None:
    store.add_memory(note("apples", ann))

    def look() -> None:
        assert len(store.list_memories(ann, now=NOW)) == 1
        elsewhere(lambda: store.add_memory(note("more apples", ann)))
        elsewhere(lambda: found(store, ann))  # it may bring what is held in memory up to date
        assert len(store.list_memories(ann, now=NOW)) == 1
        seqs = [match.seq for match in store.search_memories(ann, "apples", kinds=tuple(Kind), now=NOW)]
        assert list(store.find_summaries(ann, seqs)) == [1]

    store.read_together(ann.tenant, look)

    assert found(store, ann) == len(store.list_memories(ann, now=NOW)) == 2


def test_an_older_snapshot_leaves_what_is_held_in_memory_right(
    lasting_place: Place, store: SqlStore, ann: Owner
) -> None:
    store.add_memories([note("apples", ann) for _ in range(5)], [None] * 5)
    store.add_event(event("apples", ann.tenant))

    def change() -> None:
        store.delete_memory(ann, "m-2")
        store.add_memory(note("apples", ann))
        store.add_event(event("apples", ann.tenant))
        assert found(store, ann) == 5
        assert len(store.search_events(ann.tenant, "apples")) == 2

    def look() -> None:
        elsewhere(change)
        found(store, ann)
        seqs = [match.seq for match in store.search_events(ann.tenant, "apples")]
        assert len(store.find_events(ann.tenant, seqs)) == 1

    store.read_together(ann.tenant, look)

    assert found(store, ann) == 5
    assert len(store.search_events(ann.tenant, "apples")) == 2


def fail(unit: Unit) -> None:
    """Send a statement the database refuses."""
    unit._connection.execute("SELECT no_such_function()")  # type: ignore[attr-defined]


def test_a_read_that_fails_leaves_the_next_one_its_chance(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("apples", ann))

    def read() -> int:
        with pytest.raises(NotFound):
            store.get_memory(ann, "m-9")
        with pytest.raises(StoreError):
            store._engine.read(ann.tenant, fail)
        return found(store, ann)

    assert store.read_together(ann.tenant, read) == 1


def test_reading_together_may_be_nested_and_other_tenants_are_read_beside_it(
    store: SqlStore, ann: Owner, stranger: Owner
) -> None:
    for each in (ann, stranger):
        store.add_memory(note("apples", each))

    def read() -> int:
        return store.read_together(ann.tenant, lambda: found(store, ann)) + found(store, stranger) + found(store, ann)

    assert store.read_together(ann.tenant, read) == 3


def test_a_read_whose_time_is_over_raises_and_the_next_one_works(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("apples", ann))

    with limit_reads(-1.0), pytest.raises(StoreTimeout):
        found(store, ann)

    with limit_reads(LIMIT):
        assert found(store, ann) == 1
    assert found(store, ann) == 1


def test_a_lock_is_waited_for_no_longer_than_there_is_time() -> None:
    lock = threading.Lock()

    with lock, limit_reads(0.01), pytest.raises(StoreTimeout), hold_in_time(lock):
        raise AssertionError("it is held by another")
    with hold_in_time(lock):
        assert lock.locked()
    assert not lock.locked()


def test_what_was_read_before_the_time_was_over_is_not_read_again(
    lasting_place: Place, store: SqlStore, ann: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an index that takes longer than a recall may take would never be loaded."""
    for name in ("BATCH", "HISTORY_BATCH"):
        monkeypatch.setattr(memory_search, name, 3)
    store.add_memories([note("apples", ann) for _ in range(10)], [None] * 10)
    for _ in range(10):
        store.add_event(event("apples", ann.tenant))
    append, calls = memory_search.OwnerIndex.append, []

    def once_in_three(index: memory_search.OwnerIndex, rows: list[object]) -> None:
        append(index, rows)  # type: ignore[arg-type]
        calls.append(len(rows))
        if len(calls) % 3 == 2:
            raise StoreTimeout("over")

    monkeypatch.setattr(memory_search.OwnerIndex, "append", once_in_three)
    with closing(lasting_place.open()) as other:
        hold_indexes(other)
        with pytest.raises(StoreTimeout):
            found(other, ann)
        assert len(other.search_memories(ann, "apples", kinds=tuple(Kind), now=NOW, limit=100)) == 10
        assert calls == [3, 3, 3, 1]
        calls.clear()
        with pytest.raises(StoreTimeout):
            other.search_events(ann.tenant, "apples", limit=100)
        assert len(other.search_events(ann.tenant, "apples", limit=100)) == 10
        assert calls == [3, 3, 3, 1]
