"""What cannot be written for one owner is set aside, and everybody else's work goes on."""

from __future__ import annotations

import threading
from itertools import pairwise
from time import monotonic

import pytest

from tests.services.conftest import Clock, Place
from tests.waiting import LIMIT, eventually
from wellkept import Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.model import BackgroundStatus
from wellkept.upkeep import background

REFUSED = {
    "sqlite": "SELECT RAISE(ABORT, 'no')",
    "postgres-18": "RAISE EXCEPTION 'no' USING ERRCODE = 'check_violation'",
}
"""Statements of a trigger after which a row is never taken."""

FAILING = {"sqlite": "SELECT json('{')", "postgres-18": "RAISE EXCEPTION 'no'"}
"""The same for a database that fails."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PAUSE", 0.01)
    monkeypatch.setattr(background, "LONGEST_RETRY", 0.02)


def break_writes(place: Place, statement: str, *, table: str, change: str) -> None:
    """Have every write to the rows of agent `evil` fail, as if the rows themselves were at fault."""
    if place.engine == "sqlite":
        place.sql(f"CREATE TRIGGER broken BEFORE {change} ON {table} WHEN NEW.agent_id = 'evil' BEGIN {statement}; END")
        return
    place.sql(
        f"CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF NEW.agent_id = 'evil' THEN {statement}; END IF; RETURN NEW; END $$"
    )
    place.sql(f"CREATE TRIGGER broken BEFORE {change} ON {table} FOR EACH ROW EXECUTE FUNCTION broken()")


def mend_writes(place: Place, *, table: str) -> None:
    place.sql("DROP TRIGGER broken" if place.engine == "sqlite" else f"DROP TRIGGER broken ON {table}")


def remembering(store: Wellkept, agent: str, tenant: str) -> AgentMemory:
    memory = store.agent(agent, tenant=tenant)
    memory.remember("Prefers tabs over spaces")
    return memory


def status(store: Wellkept, name: str) -> BackgroundStatus:
    (found,) = (each for each in store.background() if each.name == name)
    return found


def test_calls_that_are_refused_are_given_up_and_stop_nobody(
    fresh_place: Place, clock: Clock, quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    with fresh_place.open(clock) as store:
        evil, good = remembering(store, "evil", "one"), remembering(store, "good", "two")
        break_writes(fresh_place, REFUSED[fresh_place.engine], table="context_calls", change="INSERT")
        evil.context("tabs?", session="s-1")
        made = good.context("tabs?", session="s-1")

        assert [call.id for call in good.prompts.list()] == [made.id]
        eventually(lambda: status(store, "context-calls").given_up == 1)
        assert evil.prompts.list() == []
        told = status(store, "context-calls")

    assert (told.is_running, told.waiting, told.set_aside, told.failures) == (True, 0, 0, background.MAX_TRIES)
    assert [message for message in caplog.messages if "given up after 5 tries" in message]
    assert len(caplog.messages) == 2


def test_calls_a_failing_store_does_not_take_wait_behind_all_others(
    fresh_place: Place, clock: Clock, quick: None
) -> None:
    with fresh_place.open(clock) as store:
        evil, good = remembering(store, "evil", "one"), remembering(store, "good", "two")
        break_writes(fresh_place, FAILING[fresh_place.engine], table="context_calls", change="INSERT")
        waiting = evil.context("tabs?", session="s-1")
        eventually(lambda: status(store, "context-calls").failures > background.MAX_TRIES)
        made = good.context("tabs?", session="s-1")

        assert [call.id for call in good.prompts.list()] == [made.id]
        assert good.prompts.get(made.id).id == made.id
        assert store.tenant("two").data.erase("text:nothing of the sort").remnants is not None
        assert [call.id for call in evil.prompts.list()] == [waiting.id], "from memory, meanwhile"
        assert evil.prompts.get(waiting.id).id == waiting.id
        told = status(store, "context-calls")
        assert (told.waiting, told.set_aside, told.given_up) == (1, 1, 0)
        assert told.last_error

        mend_writes(fresh_place, table="context_calls")
        eventually(lambda: status(store, "context-calls").waiting == 0)
        eventually(lambda: status(store, "context-calls").last_error == "")
    assert fresh_place.sql("SELECT agent_id FROM context_calls ORDER BY agent_id") == [("evil",), ("good",)]


def test_marks_that_are_refused_are_given_up_and_stop_nobody(fresh_place: Place, clock: Clock, quick: None) -> None:
    with fresh_place.open(clock) as store:
        evil, good = remembering(store, "evil", "one"), remembering(store, "good", "two")
        break_writes(fresh_place, REFUSED[fresh_place.engine], table="memories", change="UPDATE")
        evil.recall("tabs?")
        good.recall("tabs?")
        eventually(lambda: status(store, "retrieved").given_up == 1)

    rows = fresh_place.sql("SELECT agent_id FROM memories WHERE last_retrieved_at IS NOT NULL")
    assert rows == [("good",)]


def test_job_outlives_code_that_exits_and_tries_again_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_RETRY", 0.01)
    began: list[float] = []

    def run() -> None:
        began.append(monotonic())
        if len(began) < 5:
            raise SystemExit

    job = background.Job("ours", run, failed="Not done")
    job.wake()
    eventually(lambda: len(began) == 5)
    eventually(lambda: job.last_error == "")
    pauses = [later - earlier for earlier, later in pairwise(began)]
    assert all(pause >= 0.01 * 2**number for number, pause in enumerate(pauses))
    assert job.status(waiting=0, oldest_seconds=0.0).failures == 4
    job.close()


def test_job_that_is_woken_while_it_runs_runs_again() -> None:
    may_go_on, runs = threading.Event(), []

    def run() -> None:
        runs.append(1)
        may_go_on.wait(LIMIT)

    job = background.Job("ours", run, failed="Not done")
    job.wake()
    eventually(lambda: runs == [1])
    job.wake()
    may_go_on.set()
    eventually(lambda: runs == [1, 1])
    job.close()
    job.wake()
    assert runs == [1, 1]


def test_queue_gives_up_the_oldest_beyond_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PAUSE", 1000.0)
    written: list[int] = []
    ours = background.Queue[int, int](
        lambda key, value: written.append(value), merge=max, name="ours", failed="Not written", max_size=3
    )
    for number in range(5):
        ours.add(number, number)
    ours.close()

    assert written == [2, 3, 4]
    assert ours.status().given_up == 2
