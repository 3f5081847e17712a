"""Contract of agents and keys in a store, as classes that the tests of each engine subclass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from wellkept.errors import Conflict, NotFound
from wellkept.model import Agent, ApiKey, AuditEvent, KeyScope, Kind, Memory, Origin, Owner, Session

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore
from wellkept.model.stored import ConsoleLogin

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
EARLIER = NOW - timedelta(days=1)
LATER = NOW + timedelta(days=1)
ALL_KINDS = tuple(Kind)
MADE = (("k1", NOW), ("k2", NOW), ("k3", NOW), ("k0", LATER))

_fresh = itertools.count(1)


def owner(agent: str = "ann", *, tenant: str = "") -> Owner:
    """Return an owner in a tenant nobody has used before, unless one is named."""
    return Owner(tenant or f"tenant-{next(_fresh)}", agent)


def note(text: str, owner: Owner, **changes: Any) -> Memory:
    return Memory(**{"owner": owner, "kind": Kind.NOTE, "text": text, "created_at": NOW, **changes})


def agent(owner: Owner, **changes: Any) -> Agent:
    return Agent(**{"owner": owner, "name": owner.agent.title(), "created_at": NOW, "updated_at": NOW, **changes})


def api_key(id: str, tenant: str, **changes: Any) -> ApiKey:
    return ApiKey(**{"id": id, "tenant": tenant, "scope": KeyScope.READ, "created_at": NOW, **changes})


def ids(memories: Iterable[Memory]) -> list[str]:
    return [memory.id for memory in memories]


class AgentConformance:
    """Contract of `SqlStore`."""

    def test_an_agent_comes_back_as_it_was_added(self, store: SqlStore, ann: Owner) -> None:
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

    def test_an_agent_is_added_once(self, store: SqlStore, ann: Owner) -> None:
        first = store.add_agent(agent(ann))

        with pytest.raises(Conflict, match="'ann'"):
            store.add_agent(agent(ann, name="Another"))
        assert store.get_agent(ann) == first

    def test_the_same_id_is_free_in_another_tenant(self, store: SqlStore, ann: Owner, stranger: Owner) -> None:
        store.add_agent(agent(ann, name="Ours"))
        store.add_agent(agent(stranger, name="Theirs"))

        assert store.get_agent(ann).name == "Ours"

    def test_get_raises_where_find_returns_none(self, store: SqlStore, ann: Owner) -> None:
        assert store.find_agent(ann) is None
        with pytest.raises(NotFound, match=r"^There is no such agent\.$"):
            store.get_agent(ann)

    def test_agents_are_listed_by_id_in_pages(self, store: SqlStore) -> None:
        tenant = owner().tenant
        for name in ("cleo", "ann", "bob", "Zoe"):
            store.add_agent(agent(Owner(tenant, name)))

        first = [each.id for each in store.list_agents(tenant, limit=3)]
        rest = [each.id for each in store.list_agents(tenant, after=first[-1], limit=3)]

        assert first + rest == ["Zoe", "ann", "bob", "cleo"]

    def test_an_update_changes_all_but_the_beginning(self, store: SqlStore, ann: Owner) -> None:
        store.add_agent(agent(ann))

        store.update_agent(agent(ann, name="New", tools=("a",), is_active=False, created_at=LATER, updated_at=LATER))

        stored = store.get_agent(ann)
        assert stored == agent(ann, name="New", tools=("a",), is_active=False, created_at=NOW, updated_at=LATER)

    def test_updating_a_missing_agent_makes_none(self, store: SqlStore, ann: Owner) -> None:
        with pytest.raises(NotFound):
            store.update_agent(agent(ann))
        assert store.find_agent(ann) is None

    def test_an_update_leaves_the_counter_alone(self, store: SqlStore, ann: Owner) -> None:
        store.add_memory(note("one", ann))
        store.update_agent(replace(store.get_agent(ann), name="New"))

        assert store.add_memory(note("two", ann)).id == "m-2"

    def test_the_first_memory_makes_the_agent(self, store: SqlStore, ann: Owner) -> None:
        store.add_memory(note("hello", ann))

        assert store.get_agent(ann) == agent(ann, name="ann")

    def test_deleting_an_agent_takes_all_it_owns(self, store: SqlStore, ann: Owner, bob: Owner) -> None:
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

    def test_an_agent_that_comes_back_knows_nothing_of_its_former_life(self, store: SqlStore, ann: Owner) -> None:
        store.add_memory(note("apples", ann))
        assert store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)

        store.delete_agent(ann)
        store.add_memory(note("pears", ann))

        assert store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW) == []
        assert store.search_memories(ann, "pears", kinds=ALL_KINDS, now=NOW)

    def test_an_agent_is_deleted_once(self, store: SqlStore, ann: Owner) -> None:
        store.add_agent(agent(ann))
        store.delete_agent(ann)

        with pytest.raises(NotFound):
            store.delete_agent(ann)

    def test_counts_name_every_kind_and_leave_out_the_archived(self, store: SqlStore, ann: Owner, bob: Owner) -> None:
        store.add_memory(note("a", ann))
        store.add_memory(note("b", ann))
        store.add_memory(note("past", ann, kind=Kind.JOURNAL, expires_at=NOW))
        store.add_memory(note("away", ann, kind=Kind.CORE, archived_at=NOW))
        store.add_memory(note("not ann's", bob, kind=Kind.EPISODE))

        assert store.count_memories(ann) == {**dict.fromkeys(Kind, 0), Kind.JOURNAL: 1, Kind.NOTE: 2}

    def test_memories_of_many_agents_are_counted_at_once(self, store: SqlStore) -> None:
        tenant = owner().tenant
        for name, count in (("ann", 2), ("bob", 1), ("cleo", 3)):
            for _ in range(count):
                store.add_memory(note("x", Owner(tenant, name), kind=Kind.JOURNAL))

        counts = store.count_memories_by_agent(tenant, ["ann", "cleo", "nobody"])

        assert {name: each[Kind.JOURNAL] for name, each in counts.items()} == {"ann": 2, "cleo": 3, "nobody": 0}
        assert all(set(each) == set(Kind) for each in counts.values())
        assert store.count_memories_by_agent(tenant, []) == {}

    def test_records_are_counted_by_day(self, store: SqlStore, ann: Owner, bob: Owner) -> None:
        yesterday, long_ago = NOW - timedelta(days=1), NOW - timedelta(days=99)
        soon = store.add_memory(note("a", ann, created_at=NOW, expires_at=NOW + timedelta(days=2)))
        sooner = store.add_memory(note("b", bob, created_at=yesterday, expires_at=NOW + timedelta(days=1)))
        store.add_memory(note("c", ann, created_at=long_ago, flag="read this"))
        store.add_memory(note("gone", ann, created_at=NOW, archived_at=NOW))
        store.add_memory(note("not ours", owner(), created_at=NOW))
        store.add_event(AuditEvent(tenant=ann.tenant, at=NOW, action="tea.made", agent_id="ann", message="Tea"))
        store.add_event(AuditEvent(tenant=ann.tenant, at=long_ago, action="tea.made", message="Old tea"))

        for user in ("u-2", "u-1", "u-1"):
            store.add_memory(note("of a user", bob, user=user, created_at=yesterday))
        for home in (ann, ann, owner("nobody", tenant=ann.tenant), owner()):
            store.count_recalls(home, {NOW.date(): 2, long_ago.date(): 1})

        counted = store.count_days(ann.tenant, since=NOW - timedelta(days=7), now=NOW, expiring=5)

        assert {(each.agent, each.name, each.day, each.count) for each in counted.memories} == {
            ("ann", "note", NOW.date(), 1),
            ("ann", "note", None, 1),
            ("bob", "note", yesterday.date(), 4),
        }
        assert [(each.agent, each.day, each.count) for each in counted.recalls] == [("ann", NOW.date(), 4)]
        assert {(each.agent, each.name, each.day, each.count) for each in counted.users} == {
            ("bob", "u-1", yesterday.date(), 2),
            ("bob", "u-2", yesterday.date(), 1),
        }
        assert [(each.agent, each.name, each.day, each.count) for each in counted.events] == [
            ("ann", "tea.made", NOW.date(), 1)
        ]
        assert counted.review == {"ann": 1}
        assert (counted.changes, counted.prompts) == ({}, ())
        assert [(each.owner.agent, each.id) for each in counted.expiring] == [("bob", sooner.id), ("ann", soon.id)]

    def test_users_are_counted_with_their_records(self, store: SqlStore, ann: Owner, bob: Owner) -> None:
        for home, user in ((ann, "u-1"), (ann, "u-1"), (bob, "u-1"), (ann, "u-2"), (ann, None)):
            store.add_memory(note("x", home, user=user))
        store.add_session(Session(id="s-1", owner=ann, user="u-3", created_at=NOW, updated_at=NOW))

        counted = [(each.user, each.agents, each.memories, each.sessions) for each in store.count_users(ann.tenant)]

        assert counted == [("u-1", 2, 3, 0), ("u-2", 1, 1, 0), ("u-3", 1, 0, 1)]
        assert [each.user for each in store.count_users(ann.tenant, after="u-1", limit=1)] == ["u-2"]
        assert [(each.user, each.memories) for each in store.count_users(ann.tenant, agents=["bob"])] == [("u-1", 1)]

    def test_the_database_has_a_size(self, store: SqlStore, ann: Owner) -> None:
        store.add_agent(agent(ann))

        assert store.count_bytes() > 10_000


class KeyConformance:
    """Contract of `SqlStore`."""

    def test_a_key_comes_back_as_it_was_added(self, store: SqlStore, ann: Owner) -> None:
        limits = {"agents": ("atlas", "börse"), "trust": Origin.TOOL}
        key = api_key("k1", ann.tenant, scope=KeyScope.OPERATOR, name="CI 'ü'", expires_at=LATER, **limits)

        assert store.add_key(key, "hash") == key
        assert store.find_key(ann.tenant, "k1") == (key, "hash")
        assert store.list_keys(ann.tenant) == [key]

    def test_keys_are_listed_oldest_first(self, store: SqlStore, ann: Owner) -> None:
        for id, created_at in (("b", NOW), ("c", EARLIER), ("a", NOW)):
            store.add_key(api_key(id, ann.tenant, created_at=created_at), "hash")

        assert [key.id for key in store.list_keys(ann.tenant)] == ["c", "a", "b"]

    def test_an_id_is_used_once_in_a_tenant(self, store: SqlStore, ann: Owner, stranger: Owner) -> None:
        store.add_key(api_key("k1", ann.tenant), "hash")

        with pytest.raises(Conflict, match="already"):
            store.add_key(api_key("k1", ann.tenant), "another")
        store.add_key(api_key("k1", stranger.tenant), "another")
        assert store.find_key(ann.tenant, "k1") == (api_key("k1", ann.tenant), "hash")

    def test_a_revoked_key_stays_revoked_since_then(self, store: SqlStore, ann: Owner) -> None:
        key = store.add_key(api_key("k1", ann.tenant), "hash")

        store.revoke_key(ann.tenant, "k1", at=NOW)
        store.revoke_key(ann.tenant, "k1", at=LATER)

        assert store.find_key(ann.tenant, "k1") == (replace(key, revoked_at=NOW), "hash")
        with pytest.raises(NotFound, match=r"^There is no such key\.$"):
            store.revoke_key(ann.tenant, "k2", at=NOW)

    def test_the_last_use_is_kept(self, store: SqlStore, ann: Owner) -> None:
        for id in ("k1", "k2", "k3"):
            store.add_key(api_key(id, ann.tenant), "hash")

        store.mark_used(ann.tenant, ["k1", "k3", "missing"], at=LATER)

        assert [key.last_used_at for key in store.list_keys(ann.tenant)] == [LATER, None, LATER]

    def test_keys_are_listed_in_pages(self, store: SqlStore, ann: Owner) -> None:
        made = [store.add_key(replace(api_key(id, ann.tenant), created_at=at), "hash") for id, at in MADE]

        assert store.list_keys(ann.tenant) == made
        assert store.list_keys(ann.tenant, limit=2) == made[:2]
        pages = [store.list_keys(ann.tenant, after=(key.created_at, key.id), limit=2) for key in made]
        assert pages == [made[1:3], made[2:4], made[3:], []]
        assert store.list_keys(ann.tenant, after=(NOW, "k2b")) == made[2:]  # where none is

    def test_a_login_is_found_by_its_hash_in_its_tenant(self, store: SqlStore, ann: Owner, stranger: Owner) -> None:
        login = ConsoleLogin(tenant=ann.tenant, hash="a", key_id="k1", expires_at=LATER)
        store.add_login(login, at=NOW, most=10)

        assert store.find_login(ann.tenant, "a") == login
        assert store.find_login(stranger.tenant, "a") is None
        assert store.take_link(ann.tenant, "a") is None
        assert store.delete_logins(ann.tenant, "a") == 1
        assert store.find_login(ann.tenant, "a") is None

    def test_a_link_is_taken_once(self, store: SqlStore, ann: Owner) -> None:
        link = ConsoleLogin(tenant=ann.tenant, hash="a", key_id="k1", expires_at=LATER, is_link=True)
        store.add_login(link, at=NOW, most=10)

        assert store.find_login(ann.tenant, "a") is None
        assert [store.take_link(ann.tenant, "a") for _ in range(2)] == [link, None]

    def test_expired_and_excess_logins_make_room(self, store: SqlStore, ann: Owner) -> None:
        for hash, at in (("a", EARLIER), ("b", NOW), ("c", LATER)):
            expires_at = NOW if hash == "a" else LATER + (LATER - NOW)
            store.add_login(
                ConsoleLogin(tenant=ann.tenant, hash=hash, key_id="k1", expires_at=expires_at), at=at, most=10
            )
        assert [store.find_login(ann.tenant, each) is None for each in "abc"] == [True, False, False]

        login = ConsoleLogin(tenant=ann.tenant, hash="d", key_id="k1", expires_at=LATER + (LATER - NOW))
        store.add_login(login, at=LATER, most=2)

        assert [store.find_login(ann.tenant, each) is None for each in "bcd"] == [True, False, False]
        assert store.delete_logins(ann.tenant) == 2

    def test_a_key_is_a_tenants_first_row(self, store: SqlStore, ann: Owner) -> None:
        """So that maintenance and export find the tenant."""
        store.add_key(api_key("k1", ann.tenant), "hash")

        assert ann.tenant in store.list_tenants()
