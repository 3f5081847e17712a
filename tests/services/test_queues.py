"""Work that is found by its due date, however many tenants there are: maintenance, and texts without a vector."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.providers.test_openai_embedder import DIMENSIONS, vector_of
from tests.services.conftest import Clock, Place
from tests.waiting import eventually
from wellkept import Wellkept
from wellkept.upkeep import embedding, maintain

WEEK = timedelta(days=7)


class Far:
    """An embedder that answers only when it is told to, and knows what it was asked."""

    name = "far"
    dimensions = DIMENSIONS
    is_remote = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        self.go_on.wait(60)
        return [vector_of(text) for text in texts]


def visited(store: Wellkept, **options: Any) -> int:
    """Run maintenance on the whole store; return the number of agents that it looked at."""
    return store._services.maintain(is_automatic=True, **options).agents


def rest(store: Wellkept, clock: Clock) -> None:
    """Run maintenance until nothing is due."""
    visited(store)
    clock.forward(hours=1, minutes=1)
    visited(store)


# --- maintenance


def test_tenants_that_nobody_uses_are_not_visited(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        for number in range(5):
            store.agent("ann", tenant=f"t{number}").remember("Prefers tabs")
        assert visited(store) == 5
        assert visited(store) == 0
        clock.forward(hours=2)
        assert visited(store) == 5, "once more, for writes that were under way"
        for _ in range(20):
            clock.forward(hours=4)
            assert visited(store) == 0
        clock.forward(days=8)
        assert visited(store) == 5, "at least once a week"
        assert store.maintenance.read_totals().memories


def test_a_change_of_any_process_is_visited_by_the_next_run(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store, fresh_place.open(clock, embedder="off") as other:
        ann = other.agent("ann", tenant="acme")
        ann.remember("Prefers tabs")
        rest(store, clock)
        assert visited(store) == 0
        other._store._marked.clear()
        ann.remember("Lunch at noon", kind="episode", expires_at=clock() + timedelta(minutes=5))
        clock.forward(minutes=6)
        report = store.maintain()
        assert (report.agents, report.archived) == (1, 1)


def test_what_expires_or_fades_is_visited_when_it_does(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        ann = store.agent("ann", tenant="acme")
        ann.remember("Lunch at noon", kind="episode", expires_at=clock() + timedelta(days=1))
        ann.remember("Small talk", kind="episode", category="routine", importance=0.1)
        ann.items.put(("users", "7"), "login", {"at": "noon"}, ttl=2 * 24 * 3600)
        store.agent("bob", tenant="idle").remember("Prefers tabs")
        rest(store, clock)
        assert visited(store) == 0
        clock.forward(days=1)
        report = store._services.maintain(is_automatic=True)
        assert (report.agents, report.expired) == (1, 1)
        clock.forward(days=1)
        assert store._services.maintain(is_automatic=True).items == 1
        assert visited(store) <= 1


def test_other_rules_visit_every_tenant(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        for number in range(3):
            store.agent("ann", tenant="acme").remember(f"Lunch {number}", kind="episode")
        rest(store, clock)
        assert visited(store) == 0
    with fresh_place.open(clock, embedder="off", episode_quota=1) as store:
        report = store.maintain()
        assert (report.agents, report.over_quota) == (1, 2)


def test_a_run_that_dies_leaves_the_tenant_due(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        store.agent("ann", tenant="acme").remember("Prefers tabs")
        steps = iter([False, True])
        with pytest.raises(Exception, match="stopped"):
            visited(store, is_stopped=lambda: next(steps, True))
        assert visited(store) == 1
        assert store._store.begin_visit("acme")[0] is False, "the change was seen to its end"


def test_memories_of_all_tenants_are_counted_though_few_are_visited(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        for number in range(4):
            store.agent("ann", tenant=f"t{number}").remember("Prefers tabs")
        rest(store, clock)
        store.agent("ann", tenant="t0").remember("Prefers tea")
        assert visited(store) == 1
        counts = store.maintenance.read_totals().memories
        assert {f"{kind} {state}": count for (kind, state), count in counts.items() if count} == {"note live": 5}


def test_leases_of_dead_processes_go(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        dead = {"now": clock(), "until": clock() + maintain.LEASE_TIME}
        for name in (maintain.LEASE, "maintain acme ann", "embed acme"):
            assert store._store.take_lease(name, "dead", **dead)
        store._store.put_record("last something", "kept", at=clock())
        clock.forward(minutes=5)
        visited(store)
        names = {name for (name,) in fresh_place.sql("SELECT name FROM leases")}
        assert "last something" in names
        assert not {name for name in names if name.startswith(("embed ", "maintain "))}


# --- texts without a vector


def test_only_tenants_with_waiting_texts_are_asked(fresh_place: Place, clock: Clock) -> None:
    far = Far()
    with fresh_place.open(clock, embedder="off") as store:
        for number in range(3):
            store.agent("ann", tenant=f"t{number}").remember("Prefers tabs")
    far.go_on.clear()
    with fresh_place.open(clock, own_embedder=far) as store:
        assert (store.embedding.count_waiting(), store.maintenance.read_totals().waiting) == (3, 3)
        far.go_on.set()
        store.embedding.embed_waiting()
        eventually(lambda: (store.embedding.count_waiting(), store.maintenance.read_totals().waiting) == (0, 0))
        # The store embeds by itself, too; both may send the same text.
        assert len(far.asked) >= 3
        assert store._store.list_waiting_tenants(clock()) == []


def test_another_process_leaves_alone_what_one_embeds(
    fresh_place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "SHARED_RETRY", 0.05)
    far, near = Far(), Far()
    far.go_on.clear()
    with fresh_place.open(clock, own_embedder=far) as one, fresh_place.open(clock, own_embedder=near) as other:
        one.agent("ann", tenant="acme").remember("Prefers tabs")
        eventually(lambda: far.asked)
        other.agent("ann", tenant="acme").remember("Prefers tea")
        other.agent("bob", tenant="globex").remember("Prefers cake")
        eventually(lambda: near.asked == ["Prefers cake"])
        far.go_on.set()
        eventually(lambda: one.embedding.count_waiting() == 0)
        assert sorted(far.asked + near.asked) == ["Prefers cake", "Prefers tabs", "Prefers tea"]
        eventually(lambda: one.maintenance.read_totals().waiting == 0)


def test_the_texts_of_a_process_that_died_are_embedded_by_another(fresh_place: Place, clock: Clock) -> None:
    far = Far()
    with fresh_place.open(clock, embedder="off") as store:
        store.agent("ann", tenant="acme").remember("Prefers tabs")
        assert store._store.take_lease("embed acme", "dead", now=clock(), until=clock() + timedelta(seconds=30))
    with fresh_place.open(clock, own_embedder=far) as store:
        clock.forward(minutes=1)
        store.agent("bob", tenant="globex").remember("Prefers cake")
        eventually(lambda: store.embedding.count_waiting() == 0)
        assert sorted(far.asked) == ["Prefers cake", "Prefers tabs"]


def test_a_text_that_comes_while_others_are_embedded_stays_in_the_queue(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        ann = store.agent("ann", tenant="acme")
        ann.remember("Prefers tabs")
        seen = store._store.list_queue("acme")
        ann.remember("Prefers tea")
        assert store._store.settle_queue("acme", seen) == 2
        assert len(store._store.list_queue("acme")) == 2
        store.tenant("acme").data.erase("agent:ann")
        store._store.settle_queue("acme", store._store.list_queue("acme"))
        assert store._store.list_waiting_tenants(clock()) == []


def test_maintenance_queues_what_an_earlier_version_left(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        store.agent("ann", tenant="acme").remember("Prefers tabs")
        fresh_place.sql("DELETE FROM vector_queue")
        assert store._store.list_waiting_tenants(clock()) == []
        visited(store)
        assert store._store.list_waiting_tenants(clock()) == ["acme"]


# --- keys


def test_a_start_asks_only_tenants_that_may_have_keys(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as store:
        for number in range(3):
            store.agent("ann", tenant=f"t{number}").remember("Prefers tabs")
        assert store._store.list_tenants_with_keys() == []
        assert not store.keys.is_any_valid()
        key = store.tenant("t1").keys.create("read")
        assert store._store.list_tenants_with_keys() == ["t1"]
        assert store.keys.is_any_valid()
        store.tenant("t1").keys.revoke(key.record.id)
        assert not store.keys.is_any_valid()
        # A database of an earlier version does not know.
        fresh_place.sql("UPDATE tenants SET has_keys = TRUE")
        assert not store.keys.is_any_valid()
        assert store._store.list_tenants_with_keys() == ["t1"]
