"""`SqlStore`: documents, their passages, and finding them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    DIMENSIONS,
    LATER,
    NOW,
    document,
    nearest_chunks,
    owner,
    search_chunks,
    seqs,
    vector,
)
from wellkept.errors import Conflict, NotFound
from wellkept.memory.rules_filters import Comparison
from wellkept.model import Chunk, Document, Owner
from wellkept.store.conditions import ALL_ROWS, PLACE
from wellkept.store.postgres import index
from wellkept.store.sqlstore import SqlStore

ALSO_ON_OLDER = True
POLICY = Comparison("category", "=", "policy")


@pytest.fixture
def tenant(ann: Owner) -> str:
    return ann.tenant


def put(store: SqlStore, tenant: str, id: str, *passages: str, **changes: object) -> Document:
    return store.put_document(document(id, tenant, **changes), passages, [vector(1)] * len(passages))


def found(store: SqlStore, tenant: str, query: str, categories: Sequence[str] = ()) -> list[str]:
    matches = search_chunks(store, tenant, query, categories=categories)
    chunks = store.find_chunks(tenant, seqs(matches))
    return [chunks[match.seq].text for match in matches]


def test_a_document_comes_back_as_it_was_put(store: SqlStore, tenant: str) -> None:
    wanted = document(
        "guide", tenant, title="Ein 'Führer'", category="travel", source="/a/b.md", updated_at=LATER, flag="x"
    )

    assert store.put_document(wanted, ["one", "two"], [None, None]) == wanted
    assert store.get_document(tenant, "guide") == wanted


def test_documents_are_listed_by_title_with_their_sizes(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "d-3", "one", "three", title="apples", category="fruit")
    put(store, tenant, "d-1", "four", title="Bananas", category="fruit")
    put(store, tenant, "d-2", "seven", title="Apples", category="")
    put(store, tenant, "d-4", "nine", title="Cherries", category="fruit")

    listed = store.list_documents_by_title(tenant)
    assert [each.document.id for each in listed] == ["d-2", "d-3", "d-1", "d-4"]
    assert (listed[1].document.title, listed[1].passages, listed[1].chars) == ("apples", 2, 8)
    after = store.list_documents_by_title(tenant, after=("Apples", "d-2"), limit=2)
    assert [each.document.id for each in after] == ["d-3", "d-1"]
    fruit = store.list_documents_by_title(tenant, where=Comparison("category", "=", "fruit"))
    assert [each.document.id for each in fruit] == ["d-3", "d-1", "d-4"]
    assert store.count_categories(tenant) == {"": 1, "fruit": 3}


def test_passages_keep_their_order_and_get_numbers_of_the_tenant(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "a", "zero", "one")
    put(store, tenant, "b", "two")

    assert store.find_chunks(tenant, [1, 2, 3, 4]) == {
        1: Chunk(id=1, tenant=tenant, document_id="a", position=0, text="zero"),
        2: Chunk(id=2, tenant=tenant, document_id="a", position=1, text="one"),
        3: Chunk(id=3, tenant=tenant, document_id="b", position=0, text="two"),
    }
    assert store.find_chunks(tenant, []) == {}


def test_a_document_put_again_replaces_all_but_its_beginning(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "a", "apples", "pears")
    assert found(store, tenant, "apples") == ["apples"]

    again = put(store, tenant, "a", "plums", title="New", category="x", created_at=LATER, updated_at=LATER)

    assert again == document("a", tenant, title="New", category="x", created_at=NOW, updated_at=LATER)
    assert store.list_documents(tenant) == [again]
    assert found(store, tenant, "apples pears") == []
    assert found(store, tenant, "plums") == ["plums"]
    assert sorted(store.find_chunks(tenant, range(10))) == [3]  # numbers are not used again


def test_passages_that_stay_keep_number_and_vector(store: SqlStore, tenant: str) -> None:
    store.put_document(document("a", tenant), ["one", "two", "two", "three"], [vector(1)] * 4)

    store.put_document(document("a", tenant), ["new", "three", "two", "one"], [None] * 4)

    kept = [(chunk.id, chunk.position, chunk.text) for chunk in store.list_chunks(tenant, "a")]
    assert [(number if number <= 4 else "fresh", place, text) for number, place, text in kept] == [
        ("fresh", 0, "new"),
        (4, 1, "three"),
        (2, 2, "two"),
        (1, 3, "one"),
    ]
    assert set(seqs(nearest_chunks(store, tenant, vector(1)))) == {1, 2, 4}  # the new one waits for its vector
    assert found(store, tenant, "new") == ["new"]
    assert store.list_chunks(tenant, "no-such") == []


def test_a_passage_that_stays_is_found_under_its_new_category(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "a", "apples", category="food")
    assert found(store, tenant, "apples", ["food"]) == ["apples"]

    put(store, tenant, "a", "apples", category="fruit")
    assert found(store, tenant, "apples", ["food"]) == []
    assert found(store, tenant, "apples", ["fruit"]) == ["apples"]
    assert seqs(nearest_chunks(store, tenant, vector(1), categories=["fruit"])) == [1]

    put(store, tenant, "a", "apples", category="fruit", is_published=False)
    put(store, tenant, "a", "apples", category="food")  # nobody has looked in between
    assert found(store, tenant, "apples", ["fruit"]) == []
    assert found(store, tenant, "apples", ["food"]) == ["apples"]


def test_a_document_may_be_empty(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "a")

    assert [each.id for each in store.list_documents(tenant)] == ["a"]


def test_a_document_that_fails_leaves_the_old_one(store: SqlStore, tenant: str) -> None:
    kept = put(store, tenant, "a", "apples")

    with pytest.raises(Conflict):
        store.put_document(document("a", tenant, title=None), ["pears"], [None])

    assert store.get_document(tenant, "a") == kept
    assert found(store, tenant, "apples pears") == ["apples"]


def test_documents_are_listed_by_id_in_pages(store: SqlStore, tenant: str) -> None:
    for id in ("c", "a", "b", "Z"):
        put(store, tenant, id, "text")

    first = [each.id for each in store.list_documents(tenant, limit=3)]
    assert first + [each.id for each in store.list_documents(tenant, after=first[-1])] == ["Z", "a", "b", "c"]


def test_documents_are_listed_by_category(store: SqlStore, tenant: str) -> None:
    for id, category in (("a", "policy"), ("b", ""), ("c", "policy"), ("d", "Policy")):
        store.put_document(document(id, tenant, category=category), ["text"], [None])

    assert [each.id for each in store.list_documents(tenant, where=POLICY)] == ["a", "c"]
    assert [each.id for each in store.list_documents(tenant, where=POLICY, after="a")] == ["c"]
    assert [each.id for each in store.list_documents(tenant, where=Comparison("category", "=", "poli"))] == []


def test_documents_are_found_by_their_ids(store: SqlStore, tenant: str, stranger: Owner) -> None:
    kept = {id: put(store, tenant, id, "text") for id in ("a", "b", "it's")}
    put(store, stranger.tenant, "c", "text")

    assert store.find_documents(tenant, ["a", "it's", "c", "%"]) == {id: kept[id] for id in ("a", "it's")}
    assert store.find_documents(tenant, []) == {}


def test_a_deleted_document_is_gone_with_its_passages(store: SqlStore, tenant: str) -> None:
    put(store, tenant, "a", "apples")
    put(store, tenant, "b", "apples too")

    store.delete_document(tenant, "a")

    assert found(store, tenant, "apples") == ["apples too"]
    assert seqs(nearest_chunks(store, tenant, vector(1))) == [2]
    assert store.find_chunks(tenant, [1]) == {}
    for attempt in (store.get_document, store.delete_document):
        with pytest.raises(NotFound, match=r"^There is no such document\.$"):
            attempt(tenant, "a")


def test_only_the_wanted_categories_are_found(store: SqlStore, tenant: str) -> None:
    for category in ("", "travel", "food"):
        put(store, tenant, f"in {category}", f"apples {category}", category=category)

    assert len(found(store, tenant, "apples")) == 3
    assert found(store, tenant, "apples", ["food"]) == ["apples food"]
    assert set(found(store, tenant, "apples", ["food", "travel"])) == {"apples food", "apples travel"}
    assert found(store, tenant, "apples", ["Food", "%"]) == []
    assert seqs(nearest_chunks(store, tenant, vector(1), categories=["travel"])) == [2]


def test_what_is_not_published_is_not_found(store: SqlStore, tenant: str) -> None:
    hidden = document("a", tenant, is_published=False)
    store.put_document(hidden, ["apples"], [vector(1)])
    assert store.get_document(tenant, "a") == hidden
    assert found(store, tenant, "apples") == []
    assert nearest_chunks(store, tenant, vector(1)) == []

    store.put_document(replace(hidden, is_published=True), ["apples"], [vector(1)])
    assert found(store, tenant, "apples") == ["apples"]

    store.put_document(hidden, ["apples"], [vector(1)])
    assert found(store, tenant, "apples") == []


def test_passages_are_found_only_in_their_tenant(store: SqlStore, tenant: str, stranger: Owner) -> None:
    put(store, tenant, "a", "apples")
    put(store, stranger.tenant, "a", "other apples")

    assert found(store, tenant, "apples") == ["apples"]
    assert seqs(nearest_chunks(store, tenant, vector(1))) == [1]


def test_many_at_once_put_the_same_new_document(store: SqlStore, tenant: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda number: put(store, tenant, "a", f"text {number}"), range(6)))

    assert len(found(store, tenant, "text")) == 1


def test_putting_embedding_and_deleting_at_once_do_not_stop_each_other(store: SqlStore, tenant: str) -> None:
    def write(number: int) -> None:
        for _ in range(4):
            store.put_document(document(f"d{number % 3}", tenant), ["apples", "pears"], [None, None])
            store.set_vectors(tenant, [(missing, vector(1)) for missing in store.list_unembedded(tenant)])
            if number % 2:
                with suppress(NotFound):  # another thread may have been first
                    store.delete_document(tenant, f"d{number % 3}")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))


def test_a_shelf_too_large_for_memory_answers_alike(
    store: SqlStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    words = ["tea", "o'neil", "back\\\\slash", "straße", "cup", "pot", "milk"]

    def some(id: str, category: str) -> None:
        texts = [" ".join(rng.choice(words, size=rng.integers(1, 12))) for _ in range(30)]
        vectors = [vector(*rng.normal(size=DIMENSIONS)) if number % 5 else None for number in range(30)]
        store.put_document(document(id, tenant, category=category), texts, vectors)

    def answers() -> list[tuple[list[int], list[float]]]:
        asked = [("tea", ()), ("o'neil cup milk", ()), ("straße pot", ("x",)), ("milk", ("x", "y")), ("none", ())]
        found = [search_chunks(store, tenant, query, categories=only, limit=20) for query, only in asked]
        found += [nearest_chunks(store, tenant, vector(1, 0.5), categories=only, limit=20) for only in ((), ("y",))]
        return [(seqs(each), [round(match.score, 3) for match in each]) for each in found]

    for change in (
        lambda: some("a", "x"),
        lambda: some("b", "y"),
        lambda: some("a", "y"),
        lambda: store.put_document(document("b", tenant, is_published=False), ["tea"], [None]),
        lambda: store.delete_document(tenant, "a"),
        lambda: some("a", "x"),
    ):
        change()
        held = answers()
        with monkeypatch.context() as patch:
            patch.setattr(index, "SHELF_SHARE", 0)
            store.forget_cached(tenant)
            for (numbers, scores), (others, told) in zip(answers(), held, strict=True):
                assert scores == pytest.approx(told, abs=0.003)
                assert sorted(numbers) == sorted(others)


def test_a_full_page_is_found_whatever_else_the_index_holds(
    place: Place, store: SqlStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SHELF_SHARE", 0)  # as if every tenant were large
    monkeypatch.setattr(index, "EXACT_BELOW", 0)
    rng = np.random.default_rng(3)
    for other in (owner().tenant for _ in range(4)):  # right beside the question, and not ours
        crowd = [vector(1, *rng.normal(scale=0.01, size=DIMENSIONS - 1)) for _ in range(300)]
        store.put_document(document("crowd", other), ["crowd"] * len(crowd), crowd)
    mine = [vector(*rng.normal(size=DIMENSIONS)) for _ in range(60)]
    store.put_document(document("mine", tenant), ["mine"] * 60, mine)
    if place.name.startswith("postgres"):
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("ANALYZE")

    for limit in (1, 10, 60):
        matches = nearest_chunks(store, tenant, vector(1), limit=limit)
        exact = sorted(range(60), key=lambda place: -float(mine[place] @ vector(1)))[:limit]
        assert len(matches) == limit
        assert len(set(seqs(matches)) & {place + 1 for place in exact}) >= 0.9 * limit
    assert len(nearest_chunks(store, tenant, vector(1), limit=100)) == 60


@pytest.mark.only_on("postgres")
def test_the_approximate_index_is_the_one_the_statement_uses(place: Place, store: SqlStore, tenant: str) -> None:
    """Otherwise the test above would prove nothing."""
    put(store, tenant, "a", *["apples"] * 50)
    statement = store._engine._queries["nearest_chunks_by_index"]  # type: ignore[attr-defined]
    values = {"tenant": tenant, "vector": str(vector(1).tolist()), "any_category": True, "categories": [], "limit": 5}
    with psycopg.connect(place.url) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_sort = off")
        plan = connection.execute("EXPLAIN " + statement.replace(PLACE, ALL_ROWS.sql), values).fetchall()
    assert "chunk_index_nearest_1" in str(plan)
