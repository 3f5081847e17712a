"""Episodes: how much they matter, how long they live, and how maintenance lets them fade."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import apsw
import psycopg
import pytest

from tests.services.conftest import START, Clock, Place, on_one_engine
from tests.waiting import eventually
from wellkept import Conflict, Invalid, Settings, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.model import Memory, Role, State

DAY = timedelta(days=1)
LONG: dict[str, Any] = {"kind": "episode", "category": "diary", "expires_at": START + 36_500 * DAY}
"""Fields of an episode that decays but does not expire."""

ROUTINE: dict[str, Any] = {"kind": "episode", "category": "routine"}


def said(agent: AgentMemory, text: str, **fields: object) -> Memory:
    return agent.remember(text, kind="episode", **fields)  # type: ignore[arg-type]


def ids(memories: Sequence[Memory]) -> set[str]:
    return {memory.id for memory in memories}


class Hooked(Clock):
    """A clock that does something else as well, once, when it is read for the n-th time."""

    hook: Callable[[], None] | None = None
    reads_left = 0

    def __call__(self) -> datetime:
        if self.hook is not None:
            self.reads_left -= 1
            if self.reads_left <= 0:
                hook, self.hook = self.hook, None
                hook()
        return self.moment

    def on_read(self, number: int, hook: Callable[[], None]) -> None:
        self.hook, self.reads_left = hook, number


# Judged when stored


@pytest.mark.proves("E1")
def test_an_episode_keeps_who_said_it_where_and_when(ann: AgentMemory) -> None:
    episode = said(ann, "The build is green again", role="tool_result", session_id="s-1", origin="tool")

    assert (episode.role, episode.session_id, episode.created_at) == (Role.TOOL_RESULT, "s-1", START)
    assert (episode.owner, ann.get(episode.id)) == (ann.owner, episode)
    assert [hit.id for hit in ann.recall("green build")] == [episode.id]
    with pytest.raises(Invalid, match="There is no role 'oracle'"):
        said(ann, "x", role="oracle")


@pytest.mark.proves("E1", "E2")
@pytest.mark.parametrize(
    ("text", "role", "category", "importance", "days"),
    [
        ("Please remember that I am allergic to nuts", "user", "explicit", 1.0, None),
        ("We decided to keep the old logo", "user", "decision", 0.8, 90),
        ("The board approved 40,000 EUR for the move", "user", "decision", 0.9, 90),
        ("The report was completed and sent to Anna", "assistant", "task_completion", 0.7, 30),
        ("The nightly import failed with a timeout", "tool_result", "error", 0.6, 14),
        ("The invoice over $4,500 is on my desk", "user", "fact", 0.7, None),
        ("The meeting room is on the second floor", "user", "fact", 0.4, None),
        ("I decided to quit my job", "user", "fact", 0.8, None),
        ("How do you like it there?", "user", "routine", 0.3, 7),
        ("Thanks, see you tomorrow!", "user", "routine", 0.1, 7),
    ],
)
@on_one_engine
def test_importance_and_lifetime_follow_from_what_is_said(
    ann: AgentMemory, text: str, role: str, category: str, importance: float, days: int | None
) -> None:
    episode = said(ann, text, role=role)

    assert (episode.category, episode.importance) == (category, pytest.approx(importance))
    assert episode.expires_at == (None if days is None else START + days * DAY)
    assert ann.get(episode.id) == episode


@pytest.mark.proves("E1", "E2")
def test_what_the_caller_says_wins(ann: AgentMemory) -> None:
    text = "Please remember that I am allergic to nuts"

    assert said(ann, text, importance=0.25).importance == 0.25
    assert said(ann, text, importance=0.25).expires_at is None  # the category is still its own
    assert said(ann, text, category="error").expires_at == START + 14 * DAY
    assert said(ann, text, category="error", expires_at=START + DAY).expires_at == START + DAY
    assert said(ann, text, category="gossip").expires_at == START + 7 * DAY
    assert said(ann, text, category="gossip").category == "gossip"
    approval = said(ann, "The budget of the shop", category="approval")
    assert (approval.category, approval.importance, approval.expires_at) == ("approval", 0.8, START + 90 * DAY)
    assert said(ann, "The budget of the shop", category="failure").expires_at == START + 14 * DAY
    old = said(ann, "We decided on tea", created_at=START - 10 * DAY)
    assert old.expires_at == START + 80 * DAY
    for wrong in (-0.1, 1.1, float("nan"), True, "high"):
        with pytest.raises(Invalid, match=r"0 to 1|`importance` must be a number, not (nan|bool|str)"):
            said(ann, text, importance=wrong)


@pytest.mark.proves("E2")
def test_what_has_expired_is_never_returned(ann: AgentMemory, clock: Clock) -> None:
    routine = said(ann, "The owl sits on the second floor", category="routine")
    decision = said(ann, "We decided that the owl stays on the second floor")
    note = ann.remember("The owl is called Hedwig", expires_at=START + 7 * DAY)
    assert ids(ann.list()) == {routine.id, decision.id, note.id}

    clock.moment = START + 7 * DAY
    assert ids(ann.list()) == ids(ann.search("owl")) == {decision.id}
    assert [hit.id for hit in ann.recall("owl on the second floor", limit=100)] == [decision.id]
    assert ann.review.similar(decision.id) == []
    assert [ann.prompts.inject("owl", mode=mode) for mode in ("relevant", "recent_only", "hybrid")] == [None] * 3
    found = ann.call_tool("search_my_memories", {"query": "owl"})
    assert [result["id"] for result in found["results"]] == [decision.id]
    assert ann.call_tool("memory_search", {"query": "owl"})["count"] == 0
    assert ids(ann.list(state="expired")) == {routine.id, note.id}

    clock.moment = START + 90 * DAY
    assert (ann.list(), ann.recall("owl")) == ([], [])


# Fading


@pytest.mark.proves("E4")
def test_what_nobody_asks_for_fades_and_is_archived(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        weak, strong = (
            ann.remember(f"owls and {what}", importance=weight, **LONG)
            for what, weight in (("mice", 0.2), ("eagles", 0.9))
        )
        clock.forward(weeks=13)  # 0.2 · 0.95^13 = 0.1027
        assert wellkept.maintain().archived == 0

        clock.forward(weeks=1)  # 0.2 · 0.95^14 = 0.0975
        report = wellkept.maintain()

        assert (report.agents, report.examined, report.faded, report.archived) == (1, 2, 1, 1)
        assert ann.list(state="archived") == [ann.get(weak.id)]
        assert (ann.get(weak.id).archived_at, ann.get(weak.id).text) == (clock(), "owls and mice")
        assert ids(ann.list()) == {hit.id for hit in ann.recall("owls")} == {strong.id}
        assert ann.review.similar(strong.id) == []


@pytest.mark.proves("E4")
def test_being_recalled_starts_the_fading_anew(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        asked, forgotten = (ann.remember(text, importance=0.2, **LONG) for text in ("owls at night", "taxes"))
        clock.forward(weeks=13)
        assert [hit.id for hit in ann.recall("owls", limit=1)] == [asked.id]
        clock.forward(weeks=12)

        assert wellkept.maintain().faded == 1  # the mark was written before anything was judged
        assert ann.get(asked.id).last_retrieved_at == START + timedelta(weeks=13)
        assert ids(ann.list()) == {asked.id}
        assert ann.get(forgotten.id).state(clock()) is State.ARCHIVED


@contextmanager
def writers_blocked(place: Place) -> Iterator[None]:
    """Nobody can write to memories meanwhile; everybody can read."""
    if place.engine == "sqlite":
        connection = apsw.Connection(place.url.removeprefix("sqlite:///"))
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.close()
    else:
        with psycopg.connect(place.admin_url) as admin:
            admin.execute("LOCK TABLE memories IN EXCLUSIVE MODE")
            yield
            admin.rollback()


def fail_waiting_writers(place: Place) -> None:
    """Who waits for a lock of PostgreSQL waits for ever; in SQLite, until its `busy_timeout` is over."""
    if place.engine != "sqlite":
        waiting = "datname = current_database() AND wait_event_type = 'Lock'"
        place.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {waiting}")


@pytest.mark.proves("E4")
def test_marking_does_not_hold_a_recall_up(place: Place, clock: Clock, tenant_id: str) -> None:
    """One that waited for its mark would wait until the test has run out of time."""
    with place.open(clock, busy_timeout=1000) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        owls = said(ann, "owls at night")
        with writers_blocked(place):
            assert [hit.id for hit in ann.recall("owls", limit=1)] == [owls.id]


@pytest.mark.proves("E4")
def test_a_failure_loses_no_mark(place: Place, clock: Clock, tenant_id: str, caplog: pytest.LogCaptureFixture) -> None:
    def has_failed() -> bool:
        fail_waiting_writers(place)
        return "could not be marked" in caplog.text

    with place.open(clock, busy_timeout=0.2 if place.engine == "sqlite" else 60) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        first, second = said(ann, "owls at night"), said(ann, "eagles at noon")
        with writers_blocked(place):
            assert [hit.id for hit in ann.recall("owls", limit=1)] == [first.id]
            eventually(has_failed)
            clock.forward(hours=1)
            assert [hit.id for hit in ann.recall("eagles", limit=1)] == [second.id]
    with place.open(clock) as wellkept:  # the orderly end wrote what was left
        ann = wellkept.agent("ann", tenant_id)
        assert ann.get(first.id).last_retrieved_at == START
        assert ann.get(second.id).last_retrieved_at == START + timedelta(hours=1)


@pytest.mark.proves("E4")
def test_a_recall_is_marked_in_the_background_and_is_no_edit(ann: AgentMemory) -> None:
    episode = said(ann, "owls at night")
    ann.recall("owls")
    ann.recall("owls", as_of=START)  # a look at the past is not a retrieval

    eventually(lambda: ann.get(episode.id).last_retrieved_at is not None)
    marked = ann.get(episode.id)
    assert (marked.last_retrieved_at, marked.version, marked.updated_at) == (START, 1, None)
    assert ann.history(episode.id) == []


@pytest.mark.proves("E4")
def test_over_quota_the_least_important_go_first(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, episode_quota=3, maintenance_interval=0, embedder="off") as wellkept:
        ann, bob = wellkept.agent("ann"), wellkept.agent("bob")
        old = ann.remember("old but important", importance=0.6, **LONG)
        clock.forward(weeks=20)  # 0.6 · 0.95^20 = 0.215
        dull = ann.remember("small talk", importance=0.19, **LONG)
        weak = ann.remember("weak", importance=0.21, **LONG)
        fine = ann.remember("fine", importance=0.5, **LONG)
        ann.remember("note", importance=0.0)
        bob.remember_many([{"text": f"bob {number}", "importance": 0.3, **LONG} for number in range(3)])
        assert wellkept.maintain().archived == 1
        assert ids(ann.list(state="archived")) == {dull.id}

        more = ann.remember("more", importance=0.4, **LONG)
        report = wellkept.maintain()

        assert (report.agents, report.examined, report.over_quota, report.archived) == (2, 7, 1, 1)
        assert ids(ann.list(state="archived")) == {dull.id, weak.id}  # 0.21 < what is left of 0.6
        assert ids(ann.list(kind="episode")) == {old.id, fine.id, more.id}
        assert len(bob.list()) == 3
        assert wellkept.maintain().archived == 0


@pytest.mark.proves("E4")
def test_small_talk_goes_before_what_has_faded_further(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, episode_quota=1, maintenance_interval=0, embedder="off") as wellkept:
        ann = wellkept.agent("ann")
        faded = ann.remember("said long ago", importance=0.4, **LONG)
        clock.forward(weeks=20)  # 0.4 · 0.95^20 = 0.143
        chat = ann.remember("thanks", importance=0.19, **LONG)

        wellkept.maintain()

        assert (ids(ann.list()), ids(ann.list(state="archived"))) == ({faded.id}, {chat.id})


@pytest.mark.proves("E4")
def test_the_quota_counts_what_is_live(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, episode_quota=2, maintenance_interval=0, embedder="off") as wellkept:
        ann = wellkept.agent("ann")
        wrong = said(ann, "The launch is in May", importance=0.9)
        clock.forward(hours=1)
        right = said(ann, "The launch is in June", importance=0.5, supersedes=wrong.id)
        other = said(ann, "The room is booked", importance=0.4)
        gone = said(ann, "gone tomorrow", importance=1.0, expires_at=clock() + DAY)
        clock.forward(days=1)

        report = wellkept.maintain()

        assert (report.expired, report.over_quota, ids(ann.list(state="archived"))) == (1, 0, {gone.id})
        assert ids(ann.list()) == {right.id, other.id}
        assert ids(ann.list(as_of=START)) == {wrong.id}  # the past can still be read
        assert gone.id in ids(ann.list(as_of=START + timedelta(hours=2)))  # also of what was archived since


@pytest.mark.proves("E4")
def test_by_default_the_quota_is_ten_thousand() -> None:
    assert Settings().episode_quota == 10_000


@pytest.mark.proves("E4")
@pytest.mark.slow
def test_ten_thousand_and_one_are_one_too_many(tmp_path: object, clock: Clock) -> None:
    settings = Settings(embedder="off", maintenance_interval=0)
    with Wellkept(f"sqlite:///{tmp_path}/memory.db", settings=settings, clock=clock) as wellkept:
        ann = wellkept.agent("ann")
        for start in range(0, 10_000, 2_500):
            ann.remember_many({"text": f"said {number}", **LONG} for number in range(start, start + 2_500))
        assert wellkept.maintain().archived == 0
        ann.remember("the least of all", importance=0.15, **LONG)

        report = wellkept.maintain()

        assert (report.examined, report.over_quota) == (10_001, 1)
        assert [memory.text for memory in ann.list(state="archived")] == ["the least of all"]


# One run of maintenance


@pytest.mark.proves("E4")
def test_a_run_reports_and_records_what_it_did(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, episode_quota=2, maintenance_interval=0, embedder="off") as wellkept:
        ann, bob = wellkept.agent("ann", "one"), wellkept.agent("bob", "two")
        ann.remember_many([{"text": f"routine {number}", **ROUTINE} for number in range(1_300)])
        ann.remember_many([{"text": f"faint {number}", "importance": 0.1, **LONG} for number in range(3)])
        ann.remember_many([{"text": f"kept {number}", "importance": 0.9, **LONG} for number in range(4)])
        bob.remember("the only thing bob said", kind="episode", category="routine")
        clock.forward(weeks=2)
        before = {tenant: len(wellkept.tenant(tenant).audit.list()) for tenant in ("one", "two")}

        report = wellkept.maintain()

        assert (report.agents, report.examined) == (2, 1_308)
        assert (report.expired, report.faded, report.over_quota, report.archived) == (1_301, 3, 2, 1_306)
        assert (report.embedded, report.embedding_problem) == (0, "")
        for tenant, archived, words in (("one", 1_305, "1,305 episodes"), ("two", 1, "1 episode")):
            event, *earlier = wellkept.tenant(tenant).audit.list()
            assert (event.action, event.agent_id, event.at) == ("maintenance.run", None, clock())
            assert (event.message, event.meta) == (f"Maintenance archived {words}.", {"archived": archived})
            assert len(earlier) == before[tenant]
            assert wellkept.tenant(tenant).audit.verify().is_intact
        again = wellkept.maintain()
        assert (again.examined, again.archived) == (2, 0)


@pytest.mark.proves("E4")
def test_there_is_one_runner_at_a_time(fresh_place: Place) -> None:
    clock, refusals = Hooked(), []
    with fresh_place.open(clock, embedder="off") as one, fresh_place.open(Clock(), embedder="off") as two:
        said(one.agent("ann"), "something")

        def also_run() -> None:
            with pytest.raises(Conflict, match="Another process is running maintenance"):
                two.maintain()
            refusals.append(True)

        clock.on_read(2, also_run)
        assert one.maintain().examined == 1
        assert refusals == [True]
        assert two.maintain().examined == 1  # the first is done


@pytest.mark.proves("E4")
def test_after_an_error_in_the_middle_the_next_run_goes_on(fresh_place: Place) -> None:
    clock = Hooked()
    with fresh_place.open(clock, embedder="off") as wellkept:
        agents = [wellkept.agent(f"agent-{number}") for number in range(5)]
        for agent in agents:
            agent.remember_many([{"text": f"said {number}", **ROUTINE} for number in range(10)])
        clock.forward(days=8)

        def fail() -> None:
            raise LookupError("out of the blue")

        clock.on_read(8, fail)
        with pytest.raises(LookupError):
            wellkept.maintain()
        done = sum(len(agent.list(state="archived")) for agent in agents)
        report = wellkept.maintain()  # at once: the lease was given back

        assert 0 < done < 50
        assert (report.expired, done + report.expired) == (50 - done, 50)


KILLED = """
    import os, signal, sys
    from datetime import datetime
    from wellkept import Wellkept, Settings

    reads = 0

    def clock():
        global reads
        reads += 1
        if reads > 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return datetime.fromisoformat(sys.argv[2])

    Wellkept(sys.argv[1], settings=Settings(embedder="off"), clock=clock).maintain()
"""


@pytest.mark.proves("E4")
def test_the_lease_of_a_dead_runner_ends_and_another_goes_on(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as wellkept:
        agents = [wellkept.agent(f"agent-{number}") for number in range(5)]
        for agent in agents:
            agent.remember_many([{"text": f"said {number}", **ROUTINE} for number in range(10)])
        clock.forward(days=8)
        command = [sys.executable, "-c", textwrap.dedent(KILLED), fresh_place.url, clock().isoformat()]
        assert subprocess.run(command, timeout=100, check=False).returncode == -9
        done = sum(len(agent.list(state="archived")) for agent in agents)

        with pytest.raises(Conflict):
            wellkept.maintain()
        clock.forward(minutes=2)
        report = wellkept.maintain()

        assert 0 < done < 50
        assert (report.expired, done + report.expired) == (50 - done, 50)
