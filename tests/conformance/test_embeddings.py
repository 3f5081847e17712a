"""`SqlStore`: whose vectors these are, and what still waits for one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    ALL_KINDS,
    DIMENSIONS,
    EMBEDDER,
    NOW,
    document,
    nearest_chunks,
    note,
    owner,
    search_chunks,
    seqs,
    vector,
)
from tests.postgres_server import PostgresServer
from wellkept.errors import Invalid, SchemaMismatch
from wellkept.model import Owner
from wellkept.model.stored import Unembedded
from wellkept.store.sqlstore import SqlStore

pytestmark = pytest.mark.proves("X7")


@pytest.fixture
def new_place(
    place: Place, tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Place]:
    """The registry of embedders belongs to the whole database, so these tests need one each."""
    if place.name.startswith("postgres"):
        url = postgres_server.create_database(has_tables=True)
        yield Place(place.name, url)
        postgres_server.drop_database(url)
    elif place.name == "sqlite":
        yield Place(place.name, f"sqlite:///{tmp_path_factory.mktemp('new') / 'memory.db'}")
    else:
        yield place


@pytest.fixture
def new_store(new_place: Place) -> Iterator[SqlStore]:
    store = new_place.open()
    yield store
    store.close()


def waiting(store: SqlStore, tenant: str) -> list[str]:
    return [missing.text for missing in store.list_unembedded(tenant)]


def stop() -> None:
    raise KeyboardInterrupt


def near(store: SqlStore, owner: Owner) -> list[int]:
    return seqs(store.nearest_memories(owner, vector(1), kinds=ALL_KINDS, now=NOW))


def test_the_first_embedder_is_taken_down_and_another_is_refused(new_store: SqlStore) -> None:
    new_store.use_embedder("first", 8)
    new_store.use_embedder("first", 8)

    for name, dimensions in (("second", 8), ("first", 16)):
        with pytest.raises(SchemaMismatch, match=r"'first' \(8 dimensions\).*run: wellkept admin reembed"):
            new_store.use_embedder(name, dimensions)


def test_the_embedder_is_known_after_reopening(lasting_place: Place, new_place: Place) -> None:
    first = new_place.open()
    first.use_embedder("first", 8)
    first.close()

    second = new_place.open()
    with pytest.raises(SchemaMismatch, match="'first'"):
        second.use_embedder("second", 8)
    second.use_embedder("first", 8)
    second.close()


def test_several_servers_that_start_together_agree_on_the_embedder(lasting_place: Place, new_place: Place) -> None:
    stores = [new_place.open() for _ in range(6)]
    gate = Barrier(len(stores))

    def start(store: SqlStore) -> None:
        gate.wait()
        store.use_embedder(EMBEDDER, DIMENSIONS)

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(start, stores))
    ann = owner()
    stores[0].add_memory(note("apples", ann), vector(1))
    assert [near(store, ann) for store in stores] == [[1]] * len(stores)
    for store in stores:
        store.close()


def test_a_replaced_embedder_gives_way_and_any_other_is_refused(
    lasting_place: Place, new_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    ann = owner()
    first = new_place.open()
    first.use_embedder("former", 8)
    first.add_memory(note("apples", ann), np.eye(1, 8, dtype=np.float32)[0])
    first.close()
    stores = [new_place.open() for _ in range(4)]
    gate = Barrier(len(stores))

    def start(store: SqlStore) -> None:
        gate.wait()
        store.use_embedder(EMBEDDER, DIMENSIONS, replaces=("older", "former"))

    with pytest.raises(SchemaMismatch, match="'former'"):
        stores[0].use_embedder(EMBEDDER, DIMENSIONS, replaces=("older",))
    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(start, stores))

    assert "'former' is gone; 'table' replaces it".replace("table", EMBEDDER) in caplog.text
    for store in stores:
        assert waiting(store, ann.tenant) == ["apples"]
        assert store.list_waiting_tenants(NOW) == [ann.tenant]
        assert seqs(store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)) == [1]
    stores[0].set_vectors(ann.tenant, [(each, vector(1)) for each in stores[0].list_unembedded(ann.tenant)])
    assert [near(store, ann) for store in stores] == [[1]] * len(stores)
    for store in stores:
        store.close()


def test_a_replacement_that_was_interrupted_goes_on(
    lasting_place: Place, new_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = owner(), owner("bob")
    store = new_place.open()
    store.use_embedder("former", 8)
    for each in (ann, bob):
        store.add_memory(note("apples", each), np.eye(1, 8, dtype=np.float32)[0])
    drop = store._drop_vectors

    def drop_and_stop(number: int) -> None:
        drop(number)
        stop()

    with monkeypatch.context() as patch:
        patch.setattr(store, "list_tenants", lambda: [ann.tenant])
        patch.setattr(store, "_drop_vectors", drop_and_stop)
        with pytest.raises(KeyboardInterrupt):
            store.use_embedder(EMBEDDER, DIMENSIONS, replaces=("former",))
    assert [waiting(store, each.tenant) for each in (ann, bob)] == [["apples"], []]
    store.use_embedder(EMBEDDER, DIMENSIONS, replaces=("former",))

    assert [waiting(store, each.tenant) for each in (ann, bob)] == [["apples"], ["apples"]]
    store.close()


def test_another_embedder_drops_the_vectors_and_words_keep_working(new_store: SqlStore) -> None:
    ann, bob, stranger = owner(), owner("bob"), owner()
    new_store.use_embedder(EMBEDDER, DIMENSIONS)
    for each in (ann, bob, stranger):
        new_store.add_memory(note("apples", each), vector(1))
    new_store.put_document(document("a", ann.tenant), ["pears"], [vector(1)])

    new_store.change_embedder("longer", DIMENSIONS * 2)

    assert waiting(new_store, ann.tenant) == ["apples", "pears"]
    assert waiting(new_store, stranger.tenant) == ["apples"]
    assert seqs(new_store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)) == [1]
    assert seqs(search_chunks(new_store, ann.tenant, "pears")) == [1]
    longer = np.eye(1, DIMENSIONS * 2, dtype=np.float32)[0]
    assert new_store.nearest_memories(ann, longer, kinds=ALL_KINDS, now=NOW) == []
    assert nearest_chunks(new_store, ann.tenant, longer) == []

    new_store.set_vectors(ann.tenant, [(each, longer) for each in new_store.list_unembedded(ann.tenant)])
    assert seqs(new_store.nearest_memories(ann, longer, kinds=ALL_KINDS, now=NOW)) == [1]
    assert seqs(nearest_chunks(new_store, ann.tenant, longer)) == [1]


def test_changing_to_the_same_embedder_drops_nothing(new_store: SqlStore) -> None:
    ann = owner()
    new_store.use_embedder(EMBEDDER, DIMENSIONS)
    new_store.add_memory(note("apples", ann), vector(1))

    new_store.change_embedder(EMBEDDER, DIMENSIONS)

    assert near(new_store, ann) == [1]
    assert waiting(new_store, ann.tenant) == []


def test_every_tenant_that_wrote_is_listed(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    store.add_memory(note("apples", ann))
    store.put_document(document("a", stranger.tenant), [], [])

    tenants = store.list_tenants()

    assert {ann.tenant, stranger.tenant} <= set(tenants)
    assert len(tenants) == len(set(tenants))


def test_what_waits_is_listed_and_then_found(store: SqlStore, ann: Owner, bob: Owner) -> None:
    store.add_memories([note("a", ann), note("b", ann)], [None, vector(0, 1)])
    store.add_memory(note("c", bob))
    store.put_document(document("d", ann.tenant), ["d0", "d1"], [vector(0, 1), None])
    assert near(store, ann) == [2]

    missing = store.list_unembedded(ann.tenant)
    assert missing == [
        Unembedded(ann, 1, 1, "a"),
        Unembedded(bob, 1, 1, "c"),
        Unembedded(Owner(ann.tenant, ""), 2, 1, "d1"),
    ]
    assert store.count_unembedded(ann.tenant) == 3
    assert store.set_vectors(ann.tenant, [(each, vector(1)) for each in missing]) == 3

    assert waiting(store, ann.tenant) == []
    assert store.count_unembedded(ann.tenant) == 0
    assert near(store, ann) == [1, 2]
    assert near(store, bob) == [1]
    assert seqs(nearest_chunks(store, ann.tenant, vector(1))) == [2, 1]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 9])
def test_what_waits_is_listed_up_to_a_limit(store: SqlStore, ann: Owner, limit: int) -> None:
    store.add_memories([note("a", ann), note("b", ann)], [None, None])
    store.put_document(document("d", ann.tenant), ["c", "d"], [None, None])

    assert [each.text for each in store.list_unembedded(ann.tenant, limit=limit)] == list("abcd")[:limit]


def test_what_cannot_be_recalled_does_not_wait(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("archived", ann, archived_at=NOW))
    store.put_document(document("d", ann.tenant, is_published=False), ["hidden"], [None])

    assert waiting(store, ann.tenant) == []


def test_what_was_edited_or_deleted_meanwhile_is_left_alone(store: SqlStore, ann: Owner) -> None:
    edited, deleted, same = store.add_memories([note(text, ann) for text in "abc"], [None] * 3)
    missing = store.list_unembedded(ann.tenant)
    store.update_memory(replace(edited, text="new"), replaced_at=NOW)
    store.delete_memory(ann, deleted.id)

    assert store.set_vectors(ann.tenant, [(each, vector(1)) for each in missing]) == 1

    assert near(store, ann) == [3]
    assert waiting(store, ann.tenant) == ["new"]
    assert store.get_memory(ann, same.id) == same  # a vector is an index, no edit


def test_a_document_replaced_meanwhile_is_left_alone(store: SqlStore, ann: Owner) -> None:
    store.put_document(document("a", ann.tenant), ["old"], [None])
    missing = store.list_unembedded(ann.tenant)
    store.put_document(document("a", ann.tenant), ["new"], [None])

    assert store.set_vectors(ann.tenant, [(each, vector(1)) for each in missing]) == 0
    assert waiting(store, ann.tenant) == ["new"]


def test_a_vector_of_another_length_is_refused_and_nothing_is_written(store: SqlStore, ann: Owner) -> None:
    with pytest.raises(Invalid, match="8 dimensions"):
        store.add_memory(note("apples", ann), np.ones(3, np.float32))

    assert store.list_memories(ann, now=NOW) == []
    store.add_memory(note("apples", ann), vector(1))
    assert near(store, ann) == [1]


def test_without_an_embedder_words_work_and_a_vector_is_refused(new_store: SqlStore) -> None:
    ann = owner()
    new_store.add_memory(note("apples", ann))
    with pytest.raises(Invalid, match="use_embedder"):
        new_store.add_memory(note("pears", ann), vector(1))

    assert seqs(new_store.search_memories(ann, "apples pears", kinds=ALL_KINDS, now=NOW)) == [1]
    assert waiting(new_store, ann.tenant) == ["apples"]


def test_changing_again_takes_in_what_a_server_wrote_that_missed_the_change(
    lasting_place: Place, new_place: Place
) -> None:
    late, changing = new_place.open(), new_place.open()
    ann = owner()
    late.use_embedder(EMBEDDER, DIMENSIONS)
    changing.change_embedder("other", DIMENSIONS)

    late.add_memory(note("apples", ann), vector(1))  # marked as the old embedder's
    changing.change_embedder("other", DIMENSIONS)

    assert waiting(changing, ann.tenant) == ["apples"]
    late.close()
    changing.close()
