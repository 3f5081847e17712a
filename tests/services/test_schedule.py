"""Maintenance that runs by itself: at intervals, by one of many processes, and after many writes of an agent."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.services.conftest import Clock, Place
from tests.waiting import eventually
from wellkept import Wellkept
from wellkept.errors import StoreError
from wellkept.upkeep import background, maintain

HOUR = timedelta(hours=1)


def count_runs(wellkept: Wellkept) -> int:
    return sum(event.action == "maintenance.run" for event in wellkept.tenant().audit.list(limit=500))


def test_one_of_many_processes_runs_it_every_hour(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as first, fresh_place.open(clock, embedder="off") as second:
        first.agent("ann").remember("Thanks, great!", kind="episode", category="routine")
        schedules = (first.maintenance, second.maintenance)
        for each in schedules:
            each.start()
        # Both threads have asked and rest; otherwise one of them could run it, too, when the clock moves.
        eventually(lambda: all(each._job._ended for each in schedules))
        began = clock()
        next_at = first.maintenance.refresh().next_at
        assert next_at is not None
        assert timedelta(minutes=1) <= next_at - began <= timedelta(minutes=1.1)
        assert [each.run_if_due() for each in schedules] == [False, False]

        clock.forward(minutes=2)
        assert [each.run_if_due() for each in schedules] == [True, False]
        assert count_runs(first) == 0  # nothing changed, so there is nothing to record

        last, again = second.maintenance.refresh().last, second.maintenance.status().next_at
        assert last is not None
        assert again is not None
        assert (last.at, last.error, last.counts["agents"], last.counts["archived"]) == (clock(), "", 1, 0)
        assert HOUR <= again - clock() <= 1.1 * HOUR
        clock.forward(days=8)
        assert [each.run_if_due() for each in reversed(schedules)] == [True, False]
        assert (count_runs(first), len(first.agent("ann").list(state="archived"))) == (1, 1)


def test_it_stops_with_the_server_and_when_it_is_off(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off", maintenance_interval=0) as wellkept:
        wellkept.maintenance.start()
        clock.forward(days=1)
        assert (wellkept.maintenance.refresh().next_at, wellkept.maintenance.run_if_due()) == (None, False)
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.maintenance.start()
        clock.forward(days=1)
        wellkept.maintenance.stop()
        assert wellkept.maintenance.run_if_due() is False
    assert not [each for each in threading.enumerate() if each.name == "wellkept-maintenance"]


def test_a_run_by_hand_counts_and_a_failed_one_is_told(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Tea at four")
        wellkept.maintain()
        wellkept.maintenance.start()
        clock.forward(minutes=50)
        assert wellkept.maintenance.run_if_due() is False
        fresh_place.sql("ALTER TABLE idempotency_keys RENAME TO elsewhere")
        clock.forward(hours=1)

        with pytest.raises(StoreError):
            wellkept.maintenance.run_if_due()

        last = wellkept.maintenance.refresh().last
        assert last is not None
        assert last.at == clock()
        assert last.error


@pytest.mark.parametrize("verb", ["remember", "recall"])
def test_a_library_runs_it_by_time_too(
    fresh_place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(maintain, "NUDGE_SECONDS", 0.01)
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Thanks, great!", kind="episode", category="routine")
        wellkept.maintain()
        assert wellkept.agent("ann").list()
    clock.forward(days=8)
    with fresh_place.open(clock, embedder="off") as wellkept:
        ann = wellkept.agent("ann")
        ann.list()
        assert wellkept.maintenance.refresh().next_at is None, "reading a list starts nothing"
        getattr(ann, verb)("Tea at four")
        eventually(lambda: [each.text for each in ann.list(state="archived")] == ["Thanks, great!"])
        eventually(lambda: (last := wellkept.maintenance.refresh().last) is not None and last.at == clock())
    with fresh_place.open(clock, embedder="off", maintenance_interval=0) as wellkept:
        wellkept.agent("ann").remember("Tea at five")
        assert wellkept.maintenance.refresh().next_at is None


def test_a_short_program_only_does_its_own_work(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Tea at four")
    clock.forward(days=8)
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Tea at five")
    with fresh_place.open(clock, embedder="off") as wellkept:
        assert wellkept.maintenance.refresh().last is None
    assert not [each for each in threading.enumerate() if each.name == "wellkept-maintenance"]


def test_an_unexpected_error_does_not_end_it_and_is_logged_once(
    fresh_place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "FIRST_RETRY", 0.01)
    tries: list[int] = []
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Thanks, great!", kind="episode", category="routine")
        wellkept.maintenance.start()
        list_due_tenants = wellkept._store.list_due_tenants

        def failing(now: datetime) -> Any:
            tries.append(1)
            if len(tries) <= 3:
                raise ZeroDivisionError("a mistake")
            return list_due_tenants(now)

        monkeypatch.setattr(wellkept._store, "list_due_tenants", failing)
        clock.forward(days=8)
        wellkept.maintenance.request(wellkept.agent("ann").owner)

        eventually(lambda: len(tries) > 3)
        eventually(lambda: wellkept.maintenance.refresh().last is not None)
    assert [each.message for each in caplog.records if "Maintenance" in each.message] == [
        "Maintenance failed: a fault (ZeroDivisionError)"
    ]


@pytest.mark.parametrize("is_closed", [True, False], ids=["at the end", "meanwhile"])
def test_the_quota_holds_without_maintenance(fresh_place: Place, clock: Clock, is_closed: bool) -> None:
    settings: dict[str, Any] = {"embedder": "off", "episode_quota": 20}
    with fresh_place.open(clock, **settings) as wellkept:
        ann, bob = wellkept.agent("ann"), wellkept.agent("bob")
        for number in range(40):
            ann.remember(f"Anna bought {number} apples", kind="episode", importance=number / 40)
        bob.remember("Bob is here", kind="episode")
        if not is_closed:
            eventually(lambda: len(ann.list()) == 20)
    with fresh_place.open(clock, **settings) as wellkept:
        live = wellkept.agent("ann").list()
        assert [each.importance for each in live] == [number / 40 for number in range(39, 19, -1)]
        events = [each for each in wellkept.tenant().audit.list(limit=100) if each.action == "maintenance.run"]
        assert {each.agent_id for each in events} == {"ann"}
        assert sum(each.meta["archived"] for each in events) == 20


def test_the_quota_is_not_maintained_if_that_is_off(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off", episode_quota=2, maintenance_interval=0) as wellkept:
        wellkept.agent("ann").remember_many([{"text": f"Anna bought {n} apples", "kind": "episode"} for n in range(9)])
    with fresh_place.open(clock, embedder="off") as wellkept:
        assert len(wellkept.agent("ann").list()) == 9
