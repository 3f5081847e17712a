"""The router over the database and the notes file: nothing of the store port is missing, and transactions span both."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.examples import NOW, texts
from tests.notes_file.workers import ANN, file_in, note
from wellkept.errors import NotFound, StoreError
from wellkept.memory.rules_filters import parse_filter
from wellkept.model import Kind, Memory, Owner
from wellkept.store import open_store, open_workspace
from wellkept.store.notes.file import NoteTrust
from wellkept.store.notes.store import NotesStore, TrustRows
from wellkept.store.sqlstore import SqlStore

PORT = sorted(
    name
    for part in SqlStore.__mro__
    if part.__module__.startswith("wellkept.store")
    for name, member in vars(part).items()
    if inspect.isfunction(member) and not name.startswith("_")
)
ROUTED = {name for name in PORT if name in vars(NotesStore)}


@pytest.fixture
def store(workspace: Path) -> Iterator[SqlStore]:
    sql = open_store(":memory:", busy_timeout=10, pool_size=1, index_cache_mb=1)
    store = open_workspace(sql, workspace, max_notes=100)
    yield store
    store.close()


def correct(store: SqlStore, old: Memory, text: str) -> Memory:
    store.update_memory(replace(old, valid_to=NOW), replaced_at=NOW)
    return store.add_memory(note(text, supersedes=old.id))


def parameters(kind: type, name: str) -> list[tuple[object, ...]]:
    """The parameters of a method without their types, which mypy compares."""
    found = inspect.signature(getattr(kind, name)).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def test_every_other_method_of_the_port_is_that_of_the_database(store: NotesStore) -> None:
    delegated = [name for name in PORT if name not in ROUTED]

    assert len(PORT) > 120
    assert [name for name in delegated if getattr(store, name) != getattr(store.sql, name)] == []
    assert NotesStore.__mro__ == (NotesStore, object), "an inherited method would hide that of the database"


def test_every_routed_method_has_the_parameters_of_the_sql_store() -> None:
    routed = {name: parameters(NotesStore, name) for name in ROUTED}

    assert routed == {name: parameters(SqlStore, name) for name in ROUTED}


def test_no_delegated_method_calls_a_routed_one_behind_the_routers_back() -> None:
    """Inside `SqlStore`, `self` is the database alone."""
    called = re.compile(rf"\bself\.({'|'.join(sorted(ROUTED))})\(")
    delegated = [name for name in PORT if name not in ROUTED]

    assert [name for name in delegated if called.search(inspect.getsource(getattr(SqlStore, name)))] == []
    assert called.search(inspect.getsource(SqlStore.add_memory)), "the pattern finds what it looks for"


def test_correction_in_a_transaction_replaces_the_note_in_one_step(store: SqlStore, workspace: Path) -> None:
    old = store.add_memory(note("old"))
    inode = file_in(workspace).stat().st_ino

    def work() -> Memory:
        store.update_memory(replace(old, valid_to=NOW), replaced_at=NOW)
        assert file_in(workspace).stat().st_ino == inode, "nothing is removed before the correction is stored"
        with pytest.raises(NotFound):
            store.get_memory(ANN, old.id)
        assert store.find_memories(ANN, [1]) == {}
        assert store.list_memories(ANN, now=NOW) == []
        assert store.find_same_memory(ANN, Kind.NOTE, "old", now=NOW) is None
        return store.add_memory(note("new", supersedes=old.id))

    new = store.transaction(ANN.tenant, work)

    assert store.list_memories(ANN, now=NOW) == [new]


def test_failed_transaction_leaves_the_note_that_was_to_be_corrected(store: SqlStore) -> None:
    old = store.add_memory(note("old"))

    def work() -> None:
        store.update_memory(replace(old, valid_to=NOW), replaced_at=NOW)
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        store.transaction(ANN.tenant, work)

    assert store.get_memory(ANN, old.id) == old
    assert texts(store.list_memories(ANN, now=NOW)) == ["old"]


def test_inner_transaction_belongs_to_the_outer_one(store: SqlStore) -> None:
    first, second = (store.add_memory(note(text)) for text in ("first", "second"))

    def work() -> None:
        store.update_memory(replace(second, valid_to=NOW), replaced_at=NOW)
        store.transaction(ANN.tenant, lambda: correct(store, first, "third"))
        with pytest.raises(NotFound):
            store.get_memory(ANN, second.id)
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        store.transaction(ANN.tenant, work)

    assert texts(store.list_memories(ANN, now=NOW)) == ["third", "second"]


def test_note_that_ends_without_a_correction_is_removed_after_the_commit(store: SqlStore, workspace: Path) -> None:
    old = store.add_memory(note("old"))

    store.transaction(ANN.tenant, lambda: store.update_memory(replace(old, valid_to=NOW), replaced_at=NOW))

    assert file_in(workspace).read_bytes() == b""


def test_correction_outside_a_transaction_removes_the_note_at_once(store: SqlStore) -> None:
    new = correct(store, store.add_memory(note("old")), "new")

    assert store.list_memories(ANN, now=NOW) == [new]


def test_deleting_a_note_reads_the_trust_in_its_workspace_once(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, reads, find = store.add_memory(note("old")), list[Owner](), TrustRows.find

    def counted(self: TrustRows, owner: Owner) -> NoteTrust | None:
        reads.append(owner)
        return find(self, owner)

    monkeypatch.setattr(TrustRows, "find", counted)
    store.delete_memory(ANN, kept.id)

    assert reads == [ANN]


def test_notes_with_metadata_are_kept_in_the_database_and_filtered_with_the_others(
    store: SqlStore, workspace: Path
) -> None:
    store.add_memory(note("in the file", tags=("food",)))
    store.add_memory(note("in the database", tags=("food",), metadata={"city": "Oslo"}))

    written = file_in(workspace).read_text("utf-8")
    assert ("in the file" in written, "in the database" in written) == (True, False)
    food, oslo = parse_filter("tags = food"), parse_filter("metadata.city = Oslo")
    assert texts(store.list_memories(ANN, where=food, now=NOW)) == ["in the database", "in the file"]
    assert texts(store.list_memories(ANN, where=oslo, now=NOW)) == ["in the database"]
    for where, found in ((food, {1, 2}), (oslo, {2})):
        evidence = store.weigh_memories(ANN, ["file"], None, kinds=tuple(Kind), now=NOW, where=where)
        assert set(evidence.seqs[evidence.allowed].tolist()) == found
