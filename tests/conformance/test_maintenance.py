"""`SqlStore`: what fades, and who looks after it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.conformance.examples import ALL_KINDS, EARLIER, LATER, NOW, ids, note, vector
from wellkept.model import Kind, Owner, State
from wellkept.model.stored import Aging
from wellkept.store.sqlstore import SqlStore

_leases = count(1)


@pytest.fixture
def lease() -> str:
    """A name nobody has used."""
    return f"lease-{next(_leases)}"


def test_only_episodes_that_are_not_archived_age(store: SqlStore, ann: Owner, bob: Owner) -> None:
    store.add_memory(note("note", ann))
    store.add_memory(note("one", ann, kind=Kind.EPISODE, importance=0.25, expires_at=LATER, last_retrieved_at=EARLIER))
    store.add_memory(note("away", ann, kind=Kind.EPISODE, archived_at=NOW))
    store.add_memory(note("two", ann, kind=Kind.EPISODE))
    store.add_memory(note("bob's", bob, kind=Kind.EPISODE))

    assert store.list_aging(ann) == [Aging(2, 0.25, NOW, EARLIER, LATER), Aging(4, 0.5, NOW, None, None)]
    assert [each.seq for each in store.list_aging(ann, after=2)] == [4]
    assert [each.seq for each in store.list_aging(ann, limit=1)] == [2]


def test_memories_are_counted_in_the_states_they_have(store: SqlStore, ann: Owner, bob: Owner) -> None:
    different: tuple[dict[str, Any], ...] = (
        {},
        {"archived_at": NOW},
        {"archived_at": LATER},
        {"held_at": EARLIER},
        {"held_at": EARLIER, "archived_at": EARLIER},
        {"expires_at": NOW},
        {"expires_at": LATER},
        {"valid_to": EARLIER},
        {"held_at": NOW, "expires_at": EARLIER},
    )
    memories = [note(f"{n}", ann, kind=kind, **each) for kind in ALL_KINDS for n, each in enumerate(different)]
    for memory in memories:
        store.add_memory(memory)
    store.add_memory(note("bob's", bob))

    assert store.count_states(ann, now=NOW) == Counter((each.kind, each.state(NOW)) for each in memories)
    assert store.count_states(bob, now=NOW) == {(Kind.NOTE, State.LIVE): 1}


def test_archiving_takes_memories_out_of_every_search_and_keeps_them(store: SqlStore, ann: Owner) -> None:
    store.add_memories([note("apples", ann, kind=Kind.EPISODE) for _ in range(4)], [vector(1)] * 4)
    assert len(store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)) == 4

    assert store.archive_memories(ann, [1, 3, 99], now=NOW) == 2
    assert store.archive_memories(ann, [1, 3], now=LATER) == 0

    assert ids(store.list_memories(ann, state=State.ARCHIVED, now=NOW)) == ["m-3", "m-1"]
    assert store.get_memory(ann, "m-1").archived_at == NOW
    for found in (
        store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW),
        store.nearest_memories(ann, vector(1), kinds=ALL_KINDS, now=NOW),
    ):
        assert {match.seq for match in found} == {2, 4}


def test_archiving_nothing_is_fine(store: SqlStore, ann: Owner) -> None:
    assert store.archive_memories(ann, [], now=NOW) == 0


def test_being_retrieved_is_no_edit_and_never_goes_back(store: SqlStore, ann: Owner) -> None:
    first = store.add_memory(note("apples", ann))
    store.mark_retrieved(ann, [1, 99], at=NOW)
    store.mark_retrieved(ann, [1], at=EARLIER)
    store.mark_retrieved(ann, [], at=LATER)

    stored = store.get_memory(ann, first.id)
    assert (stored.last_retrieved_at, stored.version, stored.updated_at) == (NOW, 1, None)
    assert store.list_versions(ann, first.id) == []


def test_a_lease_has_one_holder_until_it_ends(store: SqlStore, lease: str) -> None:
    assert store.take_lease(lease, "one", now=EARLIER, until=NOW)
    assert not store.take_lease(lease, "two", now=EARLIER, until=LATER)
    assert store.take_lease(lease, "one", now=EARLIER, until=LATER)  # the holder may stay longer
    assert not store.take_lease(lease, "two", now=NOW, until=LATER)
    assert store.take_lease(lease, "two", now=LATER, until=LATER)  # it has run out

    store.end_lease(lease, "one")  # no longer its own
    assert not store.take_lease(lease, "three", now=EARLIER, until=LATER)
    store.end_lease(lease, "two")
    assert store.take_lease(lease, "three", now=EARLIER, until=LATER)


def test_of_many_who_want_a_lease_one_gets_it(store: SqlStore, lease: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda name: store.take_lease(lease, f"{name}", now=NOW, until=LATER), range(8)))

    assert sum(got) == 1
