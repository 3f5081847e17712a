"""Blocks of search indexes in SQLite: what they save, and that nothing removed or changed survives in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from wellkept.language.names import memory_id
from wellkept.model import Kind, Memory, Owner
from wellkept.recall.rules_similarity import Evidence
from wellkept.store import open_store
from wellkept.store.search import blocks
from wellkept.store.search.encoding import encode_vector
from wellkept.store.search.index import OwnerIndex
from wellkept.store.sqlstore import SqlStore

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OWNER = Owner("acme", "atlas")
DIMENSIONS = 64
WORDS = ("amber", "basil", "cedar", "delta", "ember", "flint", "grove", "haven")
VECTORS = np.random.default_rng(5).standard_normal((200, DIMENSIONS)).astype(np.float32)


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_ENTRIES", 32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of entries of the blocks that were read."""
    counts = list[int]()
    load: Callable[..., OwnerIndex] = OwnerIndex.load

    def count(*args: object) -> OwnerIndex:
        index = load(*args)
        counts.append(index.count)
        return index

    monkeypatch.setattr(OwnerIndex, "load", count)
    return counts


def open_file(file: Path) -> SqlStore:
    store = open_store(f"sqlite:///{file}", busy_timeout=10, pool_size=1, index_cache_mb=64)
    assert isinstance(store, SqlStore)
    store.use_embedder("test", DIMENSIONS)
    return store


def make(number: int, *, is_ending: bool = False) -> Memory:
    """Make a memory; one that is ending lives for another ten days from each reading."""
    text = f"{WORDS[number % 8]} {WORDS[number // 8 % 8]} {WORDS[number % 8]} item {number}"
    memory = Memory(owner=OWNER, kind=Kind.NOTE, text=text, created_at=NOW + timedelta(minutes=number))
    return replace(memory, expires_at=NOW + timedelta(days=1), ttl_seconds=864_000) if is_ending else memory


def fill(file: Path, count: int = 110, *, is_ending: bool = False) -> None:
    """Store memories and ask once, so that blocks are written."""
    store = open_file(file)
    store.add_memories([make(number, is_ending=is_ending) for number in range(count)], list(VECTORS[:count]))
    ask(store)
    store.close()


def ask(store: SqlStore, now: datetime = NOW) -> Evidence:
    terms = ["amber", "cedar", "item"]
    return store.weigh_memories(OWNER, terms, VECTORS[0], kinds=tuple(Kind), now=now)


def list_blocks(file: Path) -> list[Any]:
    connection = apsw.Connection(str(file))
    rows = connection.execute("SELECT first_seq, last_seq, entries FROM index_blocks ORDER BY 1").fetchall()
    connection.close()
    return rows


def assert_same(one: Evidence, other: Evidence) -> None:
    for name in ("seqs", "conversations", "lengths", "since", "speakers", "traits", "cosines"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for (rows, counts), (other_rows, other_counts) in zip(one.occurrences, other.occurrences, strict=True):
        order, other_order = np.argsort(rows), np.argsort(other_rows)
        np.testing.assert_array_equal(rows[order], other_rows[other_order])
        np.testing.assert_array_equal(counts[order], other_counts[other_order])


def check_against_rows(file: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    """Ask in a new store, and again in one that has no blocks; both must answer the same."""
    store = open_file(file)
    found = ask(store)
    store.close()
    with monkeypatch.context() as patched:
        patched.setattr(blocks, "FORMAT", 99)
        patched.setattr(blocks.IndexBlocks, "save", lambda *args: None)
        store = open_file(file)
        assert_same(found, ask(store))
        store.close()
    return found


def test_an_index_from_blocks_equals_one_from_rows(
    file: Path, loaded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(file)
    assert list_blocks(file) == [(0, 31, 31), (32, 63, 32), (64, 95, 32)]
    assert loaded == []

    found = check_against_rows(file, monkeypatch)

    assert loaded == [31, 32, 32]
    assert len(found.seqs) == 110


def test_rows_after_the_blocks_are_found(file: Path, loaded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file)
    store = open_file(file)
    ask(store)
    store.add_memories([make(number) for number in range(110, 115)], list(VECTORS[110:115]))
    assert len(ask(store).seqs) == 115
    store.close()

    assert len(check_against_rows(file, monkeypatch).seqs) == 115


def test_a_deleted_memory_takes_its_block_along(file: Path, loaded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file)
    store = open_file(file)
    store.delete_memory(OWNER, memory_id(40))
    assert list_blocks(file) == [(0, 31, 31), (64, 95, 32)]
    store.close()

    found = check_against_rows(file, monkeypatch)

    assert 40 not in found.seqs
    assert len(found.seqs) == 109
    assert list_blocks(file) == [(0, 31, 31), (32, 63, 31), (64, 95, 32)], "written again"


def test_an_edited_memory_takes_its_block_along(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file)
    store = open_file(file)
    old = store.get_memory(OWNER, memory_id(70))
    store.update_memory(replace(old, text="grove haven"), VECTORS[150], replaced_at=NOW)
    assert list_blocks(file) == [(0, 31, 31), (32, 63, 32)]
    store.close()

    check_against_rows(file, monkeypatch)


def test_an_archived_memory_that_returns_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file)
    store = open_file(file)
    store.archive_memories(OWNER, [5], now=NOW)
    store.close()
    assert 5 not in check_against_rows(file, monkeypatch).seqs
    assert (0, 31, 30) in list_blocks(file)

    store = open_file(file)
    memory = store.get_memory(OWNER, memory_id(5))
    store.update_memory(replace(memory, archived_at=None), VECTORS[4], replaced_at=NOW)
    assert (0, 31, 30) not in list_blocks(file)
    store.close()
    assert 5 in check_against_rows(file, monkeypatch).seqs


def test_a_moved_end_is_noted_and_does_not_cost_the_block(
    file: Path, loaded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(file, is_ending=True)
    store = open_file(file)
    store.mark_retrieved(OWNER, [7, 8, 60], at=NOW)
    store.close()
    assert len(list_blocks(file)) == 3

    check_against_rows(file, monkeypatch)
    store = open_file(file)
    later = ask(store, now=NOW + timedelta(days=2))
    store.close()

    assert {7, 8, 60} == set(later.seqs.tolist())
    assert loaded == [31, 32, 32] * 2


def test_moved_ends_are_read_without_comparing_all_versions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file, is_ending=True)
    store = open_file(file)
    ask(store)
    with monkeypatch.context() as patched:
        patched.setattr(OwnerIndex, "compare", lambda *args: pytest.fail("all versions were compared"))
        store.mark_retrieved(OWNER, [7, 60], at=NOW)
        store.add_memories([make(110, is_ending=True)], [VECTORS[110]])
        store.mark_retrieved(OWNER, [8, 105, 111], at=NOW)
        later = ask(store, now=NOW + timedelta(days=2))
    assert {7, 8, 60, 105, 111} == set(later.seqs.tolist())

    store.mark_retrieved(OWNER, [9], at=NOW)
    store.delete_memory(OWNER, memory_id(60))
    later = ask(store, now=NOW + timedelta(days=2))
    assert {7, 8, 9, 105, 111} == set(later.seqs.tolist())
    assert len(ask(store).seqs) == 110
    store.close()


def test_a_block_with_many_notes_is_written_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_NOTED", 2)
    fill(file, is_ending=True)
    store = open_file(file)
    store.mark_retrieved(OWNER, list(range(1, 96)), at=NOW)
    ask(store)
    store.close()

    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT count(*) FROM index_changes").fetchall() == [(0,)]
    assert connection.execute("SELECT DISTINCT rewrites FROM index_blocks").fetchall() == [(1,)]
    connection.close()
    check_against_rows(file, monkeypatch)


def test_a_change_between_reading_and_writing_keeps_the_block_out(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = OwnerIndex.dump
    store = open_file(file)

    def delete_first(index: OwnerIndex) -> bytes:
        if 40 in index.seqs:
            store.delete_memory(OWNER, memory_id(40))
        return dump(index)

    monkeypatch.setattr(OwnerIndex, "dump", delete_first)
    store.add_memories([make(number) for number in range(110)], list(VECTORS[:110]))
    ask(store)
    store.close()

    assert [first for first, *_ in list_blocks(file)] == [0, 64]


def test_a_new_life_removes_all_blocks(file: Path) -> None:
    fill(file)
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE agents SET life = life + 1")
    connection.close()

    assert list_blocks(file) == []


def test_a_deleted_agent_leaves_no_block(file: Path) -> None:
    fill(file)
    store = open_file(file)
    store.delete_agent(OWNER)
    store.close()

    assert list_blocks(file) == []


def test_no_byte_of_an_erased_vector_stays_in_the_file(file: Path) -> None:
    fill(file)
    wanted = encode_vector(VECTORS[39])[4:]
    assert file.read_bytes().count(wanted) == 2, "in the row and in the block"
    store = open_file(file)
    (trace,) = store.list_traces(OWNER.tenant, "memories", agent=OWNER.agent)[39:40]
    store.erase_traces(OWNER.tenant, [trace], [])
    store.scrub()
    store.close()

    assert wanted not in file.read_bytes()
    assert not any(wanted in each.read_bytes() for each in file.parent.glob("memory.db-*"))


def test_blocks_of_another_embedder_are_ignored(file: Path, loaded: list[int]) -> None:
    fill(file)
    store = open_store(f"sqlite:///{file}", busy_timeout=10, pool_size=1, index_cache_mb=64)
    found = store.weigh_memories(OWNER, ["amber"], None, kinds=tuple(Kind), now=NOW)
    store.close()

    assert loaded == []
    assert len(found.seqs) == 110
