"""Agents without an index in memory, which PostgreSQL searches itself: the same answers, and no wait for an index."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import Place, hold_indexes
from tests.waiting import eventually
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import Hit
from wellkept.store.search import memory_search
from wellkept.store.search.memory_search import MIN_ASKED

pytestmark = pytest.mark.only_on("postgres")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PEOPLE = ("Ann", "Bob", "Carla", "Deniz")
PLACES = ("Oslo", "Porto", "Lyon", "Graz", "O'Brien's", "back\\slash street")
THINGS = ("piano", "bicycle", "garden", "ticket", "bread", "passport", "kitchen", "dog")
FORMS = (
    "{who}: I bought a {thing} in {place} for {number} euros.",
    "{who} went to {place} last {day} and lost the {thing}.",
    "Where is the {thing} of {who}?",
    "The {thing}, the {thing} and again the {thing}: {who} talks of nothing else.",
    "Sure! Here is a list:\n- {thing}\n- {place}\n- {who}",
    "On {date} {who} sold the {thing}.",
    "We agreed that {who} waters the {thing} in {place} every {day}.",
)
DAYS = ("Monday", "Tuesday", "summer", "week")
CLOSE = 1e-4
"""Difference of scores that counts as a tie."""


def write_text(rng: random.Random) -> str:
    return rng.choice(FORMS).format(
        who=rng.choice(PEOPLE),
        thing=rng.choice(THINGS),
        place=rng.choice(PLACES),
        number=rng.randrange(2, 900),
        day=rng.choice(DAYS),
        date=f"2026-0{rng.randrange(1, 3)}-{rng.randrange(10, 28)}",
    )


def write_draft(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(("note", "episode", "episode"))
    said_at = NOW - timedelta(minutes=rng.randrange(60 * 24 * 60))
    user = rng.choice((None, None, "u1", "u2"))
    ends = {"expires_at": NOW + timedelta(days=rng.randrange(-20, 40))} if rng.random() < 0.2 else {}
    return {
        "text": write_text(rng),
        "kind": kind,
        "user": user,
        # A session belongs to one user.
        "session_id": rng.choice((None, f"s{rng.randrange(8)}-{user}")) if kind == "episode" else None,
        "role": rng.choice(("user", "assistant")) if kind == "episode" else None,
        "created_at": said_at,
        "tags": rng.sample(("home", "work", "trip"), rng.randrange(3)),
        "metadata": {"size": rng.randrange(10)} if rng.random() < 0.5 else None,
        **ends,
    }


def write_question(rng: random.Random) -> tuple[str, dict[str, Any]]:
    words = f"{rng.choice(PEOPLE)} {rng.choice(THINGS)} {rng.choice(PLACES)}"
    query = rng.choice(
        (words, f"What did I buy in {rng.choice(PLACES)}?", f"When did {words} go?", write_text(rng), "bread bread dog")
    )
    options: dict[str, Any] = {"limit": rng.choice((3, 20)), "sources": ["memory"]}
    options |= rng.choice(
        (
            {"min_relevance": 0.0},
            {"min_relevance": 0.3},
            {},
            {"where": "metadata.size >= 4", "min_relevance": 0.0},
            {"tag": "trip", "min_relevance": 0.0},
            {"kinds": ["note"], "min_relevance": 0.0},
            {"as_of": NOW - timedelta(days=rng.randrange(60)), "min_relevance": 0.0},
            {"user": "u1", "min_relevance": 0.0},
            {"user": "u2", "as_of": NOW - timedelta(days=30), "tag": "home", "min_relevance": 0.0},
        )
    )
    return query, options


@pytest.fixture(scope="module")
def both_ways(place: Place) -> Iterator[tuple[Wellkept, Wellkept]]:
    """A server that never loads an index, and one that searches every agent in memory."""
    with (
        Wellkept(settings=Settings(url=place.url), clock=lambda: NOW) as cold,
        Wellkept(settings=Settings(url=place.url), clock=lambda: NOW) as warm,
    ):
        hold_indexes(warm._services.store)
        yield cold, warm


def assert_same(left: Sequence[Hit], right: Sequence[Hit]) -> None:
    """Equal scores in the same order, and the same ids up to ties."""
    assert [hit.score for hit in left] == pytest.approx([hit.score for hit in right], abs=CLOSE)
    scores = {hit.id: hit.score for hit in right}
    last = min(scores.values(), default=0.0)
    for hit in left:
        assert scores.get(hit.id, last) == pytest.approx(hit.score, abs=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_database_and_index_give_the_same_answers(
    both_ways: tuple[Wellkept, Wellkept], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellkept.store.search.memory_search.MIN_ASKED", 10**9)
    rng = random.Random(seed)
    cold, warm = (each.agent(f"agent{seed}") for each in both_ways)
    cold.remember_many([write_draft(rng) for _ in range(rng.choice((1, 30, 400)))])
    found = 0
    for _ in range(40):
        query, options = write_question(rng)
        left, right = cold.recall(query, **options), warm.recall(query, **options)
        assert not left.unanswered
        assert_same(left, right)
        found += len(left)
        if rng.random() < 0.1 and left:
            warm.update(left[0].id, text=write_text(rng))
        elif rng.random() < 0.1 and left:
            cold.forget(left[-1].id)
    assert found


def test_a_question_of_many_words_finds_each_of_them(both_ways: tuple[Wellkept, Wellkept]) -> None:
    """The bits of the words fill more than one number."""
    words = [f"w{number}ord" for number in range(150)]
    cold, warm = (each.agent("long") for each in both_ways)
    for start in range(0, 150, 5):
        cold.remember(" ".join(words[start : start + 5]))
    for count in (61, 62, 63, 64):
        query = " ".join(words[:count])
        assert_same(*(each.recall(query, limit=40, sources=["memory"], min_relevance=0.0) for each in (cold, warm)))


def count_held(wellkept: Wellkept, agent: str = "") -> int:
    """Count the indexes of agents in memory."""
    held = wellkept._services.store._engine.index._indexes._cached
    return sum(1 for key in held if key.agent and agent in ("", key.agent))


def ask(agent: AgentMemory, query: str = "bread") -> list[str]:
    answer = agent.recall(query, sources=["memory"], min_relevance=0.0, limit=100)
    assert not answer.unanswered
    return [hit.id for hit in answer]


@pytest.fixture
def wellkept(lasting_place: Place) -> Iterator[Wellkept]:
    with Wellkept(settings=Settings(url=lasting_place.url), clock=lambda: NOW) as opened:
        yield opened


def test_only_an_agent_asked_repeatedly_gets_an_index(wellkept: Wellkept) -> None:
    once, often = wellkept.agent("once"), wellkept.agent("often")
    for agent in (once, often):
        agent.remember("bread")
    assert ask(once) == ask(often) == ["m-1"]
    assert count_held(wellkept) == 0
    for _ in range(MIN_ASKED):
        ask(often)

    eventually(lambda: count_held(wellkept, "often") == 1)
    assert count_held(wellkept, "once") == 0
    often.remember("more bread")
    assert sorted(ask(often)) == ["m-1", "m-2"]


def test_an_answer_does_not_wait_for_an_index_that_is_loading(
    wellkept: Wellkept, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, may_go_on, is_loading = memory_search.OwnerIndex.append, threading.Event(), threading.Event()

    def append_late(index: Any, rows: Any) -> None:
        is_loading.set()
        assert may_go_on.wait(60)
        append(index, rows)

    monkeypatch.setattr(memory_search.OwnerIndex, "append", append_late)
    agent = wellkept.agent("loading")
    agent.remember("bread")
    for _ in range(MIN_ASKED):
        ask(agent)
    assert is_loading.wait(60)
    agent.remember("more bread")
    try:
        assert sorted(ask(agent)) == ["m-1", "m-2"]
        assert count_held(wellkept, "loading") == 0
    finally:
        may_go_on.set()
    eventually(lambda: count_held(wellkept, "loading") == 1)
    agent.remember("even more bread")
    assert sorted(ask(agent)) == ["m-1", "m-2", "m-3"]


def test_an_index_that_was_loading_during_an_erasure_is_not_kept(
    wellkept: Wellkept, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, may_go_on, is_loading = memory_search.OwnerIndex.append, threading.Event(), threading.Event()

    def append_late(index: Any, rows: Any) -> None:
        append(index, rows)
        is_loading.set()
        assert may_go_on.wait(60)

    monkeypatch.setattr(memory_search.OwnerIndex, "append", append_late)
    agent = wellkept.agent("erased")
    agent.remember("bread")
    for _ in range(MIN_ASKED):
        ask(agent)
    assert is_loading.wait(60)
    wellkept.tenant().data.erase("agent:erased")
    may_go_on.set()
    loader = wellkept._services.store._engine.index._loader  # type: ignore[attr-defined]
    eventually(lambda: not loader._waiting)
    assert count_held(wellkept, "erased") == 0


def test_indexes_never_take_more_than_the_setting(lasting_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellkept.store.search.memory_search.MIN_ASKED", 1)
    with Wellkept(settings=Settings(url=lasting_place.url, index_cache_mb=1), clock=lambda: NOW) as wellkept:
        agents = [wellkept.agent(f"limited{number}") for number in range(5)]
        rng = random.Random(1)
        for agent in agents[:4]:
            agent.remember_many([{"text": write_text(rng), "kind": "episode"} for _ in range(250)])
        agents[4].remember_many([{"text": write_text(rng), "kind": "episode"} for _ in range(4000)])
        indexes = wellkept._services.store._engine.index._indexes
        for _ in range(40):
            assert ask(rng.choice(agents), rng.choice(THINGS))
            assert sum(each.held.index.nbytes for each in list(indexes._cached.values())) <= 1024 * 1024
        # Its index alone takes more than a megabyte.
        assert ask(agents[4])
        assert count_held(wellkept, "limited4") == 0
        assert count_held(wellkept) >= 1


@pytest.mark.slow
def test_agents_asked_in_turn_do_not_displace_each_other(lasting_place: Place) -> None:
    with Wellkept(settings=Settings(url=lasting_place.url, index_cache_mb=1), clock=lambda: NOW) as wellkept:
        agents = [wellkept.agent(f"turn{number}") for number in range(6)]
        rng = random.Random(2)
        for agent in agents:
            agent.remember_many([{"text": write_text(rng), "kind": "episode"} for _ in range(300)])
        indexes = wellkept._services.store._engine.index._indexes
        for _ in range(2 * MIN_ASKED):
            for agent in agents:
                ask(agent)
        loader = wellkept._services.store._engine.index._loader  # type: ignore[attr-defined]
        eventually(lambda: not loader._waiting)
        held = set(indexes._cached)
        assert held
        for _ in range(2 * MIN_ASKED):
            for agent in agents:
                ask(agent)
        assert set(indexes._cached) == held


def test_a_closed_connection_leaves_the_indexes_in_memory(
    wellkept: Wellkept, lasting_place: Place, request: pytest.FixtureRequest
) -> None:
    agent = wellkept.agent("connected")
    agent.remember("bread")
    for _ in range(MIN_ASKED):
        ask(agent)
    eventually(lambda: count_held(wellkept, "connected") == 1)
    server = request.getfixturevalue("postgres_server")
    with psycopg.connect(server.admin_url(lasting_place.url), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert ask(agent) == ["m-1"]
    assert count_held(wellkept, "connected") == 1
