"""`ports.AgentStore`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.errors import Conflict, NotFound
from recollect.model import Kind, Owner
from recollect.ports import Store
from tests.conformance.examples import ALL_KINDS, LATER, NOW, agent, ids, note, owner


def test_an_agent_comes_back_as_it_was_added(store: Store, ann: Owner) -> None:
    added = store.add_agent(
        agent(
            ann,
            name="Ann 'the' Ägent",
            system_prompt="Be brief.\nBe kind.",
            model="some/model",
            tools=("memory_store", 'quo"te'),
            knowledge_categories=("policy", "Größe"),
            colour="#aa00ff",
            icon="🦉",
            is_active=False,
            updated_at=LATER,
        )
    )

    assert store.get_agent(ann) == store.find_agent(ann) == added


def test_an_agent_is_added_once(store: Store, ann: Owner) -> None:
    first = store.add_agent(agent(ann))

    with pytest.raises(Conflict, match="'ann'"):
        store.add_agent(agent(ann, name="Another"))
    assert store.get_agent(ann) == first


def test_the_same_id_is_free_in_another_tenant(store: Store, ann: Owner, stranger: Owner) -> None:
    store.add_agent(agent(ann, name="Ours"))
    store.add_agent(agent(stranger, name="Theirs"))

    assert store.get_agent(ann).name == "Ours"


def test_get_raises_where_find_returns_none(store: Store, ann: Owner) -> None:
    assert store.find_agent(ann) is None
    with pytest.raises(NotFound, match=r"^There is no such agent\.$"):
        store.get_agent(ann)


def test_agents_are_listed_by_id_in_pages(store: Store) -> None:
    tenant = owner().tenant
    for name in ("cleo", "ann", "bob", "Zoe"):
        store.add_agent(agent(Owner(tenant, name)))

    first = [each.id for each in store.list_agents(tenant, limit=3)]
    rest = [each.id for each in store.list_agents(tenant, after=first[-1], limit=3)]

    assert first + rest == ["Zoe", "ann", "bob", "cleo"]


def test_an_update_changes_all_but_the_beginning(store: Store, ann: Owner) -> None:
    store.add_agent(agent(ann))

    store.update_agent(agent(ann, name="New", tools=("a",), is_active=False, created_at=LATER, updated_at=LATER))

    stored = store.get_agent(ann)
    assert stored == agent(ann, name="New", tools=("a",), is_active=False, created_at=NOW, updated_at=LATER)


def test_updating_a_missing_agent_makes_none(store: Store, ann: Owner) -> None:
    with pytest.raises(NotFound):
        store.update_agent(agent(ann))
    assert store.find_agent(ann) is None


def test_an_update_leaves_the_counter_alone(store: Store, ann: Owner) -> None:
    store.add_memory(note("one", ann))
    store.update_agent(replace(store.get_agent(ann), name="New"))

    assert store.add_memory(note("two", ann)).id == "m-2"


def test_the_first_memory_makes_the_agent(store: Store, ann: Owner) -> None:
    store.add_memory(note("hello", ann))

    assert store.get_agent(ann) == agent(ann, name="ann")


def test_deleting_an_agent_takes_all_it_owns(store: Store, ann: Owner, bob: Owner) -> None:
    mine = store.add_memory(note("apples", ann))
    store.update_memory(replace(mine, text="pears"), replaced_at=LATER)
    store.add_memory(note("pears", bob))

    store.delete_agent(ann)

    assert store.find_agent(ann) is None
    assert store.list_memories(ann, now=NOW) == []
    assert store.search_memories(ann, "pears", kinds=ALL_KINDS, now=NOW) == []
    with pytest.raises(NotFound):
        store.list_versions(ann, mine.id)
    assert ids(store.list_memories(bob, now=NOW)) == ["m-1"]


def test_an_agent_that_comes_back_knows_nothing_of_its_former_life(store: Store, ann: Owner) -> None:
    store.add_memory(note("apples", ann))
    assert store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)

    store.delete_agent(ann)
    store.add_memory(note("pears", ann))

    assert store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW) == []
    assert store.search_memories(ann, "pears", kinds=ALL_KINDS, now=NOW)


def test_an_agent_is_deleted_once(store: Store, ann: Owner) -> None:
    store.add_agent(agent(ann))
    store.delete_agent(ann)

    with pytest.raises(NotFound):
        store.delete_agent(ann)


def test_counts_name_every_kind_and_leave_out_the_archived(store: Store, ann: Owner, bob: Owner) -> None:
    store.add_memory(note("a", ann))
    store.add_memory(note("b", ann))
    store.add_memory(note("past", ann, kind=Kind.JOURNAL, expires_at=NOW))
    store.add_memory(note("away", ann, kind=Kind.CORE, archived_at=NOW))
    store.add_memory(note("not ann's", bob, kind=Kind.EPISODE))

    assert store.count_memories(ann) == {Kind.CORE: 0, Kind.JOURNAL: 1, Kind.NOTE: 2, Kind.EPISODE: 0, Kind.ITEM: 0}


def test_memories_of_many_agents_are_counted_at_once(store: Store) -> None:
    tenant = owner().tenant
    for name, count in (("ann", 2), ("bob", 1), ("cleo", 3)):
        for _ in range(count):
            store.add_memory(note("x", Owner(tenant, name), kind=Kind.JOURNAL))

    counts = store.count_memories_by_agent(tenant, ["ann", "cleo", "nobody"])

    assert {name: each[Kind.JOURNAL] for name, each in counts.items()} == {"ann": 2, "cleo": 3, "nobody": 0}
    assert all(set(each) == set(Kind) for each in counts.values())
    assert store.count_memories_by_agent(tenant, []) == {}


def test_the_database_has_a_size(store: Store, ann: Owner) -> None:
    store.add_agent(agent(ann))

    assert store.count_bytes() > 10_000
