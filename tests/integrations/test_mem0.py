"""Memory with mem0's methods, which needs no framework: its filters, refusals and page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.examples import read_expected, run_example
from wellkept import Settings, Wellkept
from wellkept.integrations.mem0 import AsyncMemory, Memory, read_config

SCOPE = {"user_id": "lena"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db"
    with Wellkept(request.getfixturevalue("postgres_url") if request.param == "postgres" else url) as opened:
        yield opened


@pytest.fixture(scope="module")
def memory(store: Wellkept) -> Memory:
    memory = Memory(store)
    for text, agent, metadata in (
        ("red", None, {"n": 1, "tags": ["a", "b"], "deep": {"x": "y"}}),
        ("green", "atlas", {"n": 2, "odd key": "z"}),
        ("blue", "atlas", {}),
    ):
        memory.add(text, **SCOPE, agent_id=agent, metadata=metadata, infer=False)
    memory.add("foreign", user_id="kim", infer=False)
    memory.add("of nobody", agent_id="atlas", infer=False)
    return memory


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "blue green red"),
        ({"n": 1}, "red"),
        ({"n": {"ne": 1}}, "blue green"),
        ({"n": {"gt": 0, "lte": 1}}, "red"),
        ({"n": {"in": [2, 3]}}, "green"),
        ({"n": [1, 2]}, "green red"),
        ({"n": {"nin": [2]}}, "blue red"),
        ({"n": "*"}, "green red"),
        ({"tags": "a"}, "red"),
        ({"deep.x": "y"}, "red"),
        ({"odd key": "z"}, "green"),
        ({"AND": [{"n": {"gte": 1}}, {"n": {"lt": 2}}]}, "red"),
        ({"OR": [{"n": 1}, {"odd key": "z", "n": 2}]}, "green red"),
        ({"NOT": [{"n": 1}, {"n": 2}]}, "blue"),
        ({"agent_id": "atlas"}, "blue green"),
        ({"agent_id": "*"}, "blue green red"),
        ({"agent_id": {"in": ["atlas", "other"]}}, "blue green"),
        ({"OR": [{"agent_id": "atlas"}, {"n": 1}]}, "blue green red"),
        ({"NOT": [{"agent_id": "atlas"}]}, "red"),
        ({"created_at": {"gte": "2020-01-01"}}, "blue green red"),
        ({"created_at": {"lt": "2020-01-01"}}, ""),
    ],
    ids=str,
)
def test_filters(memory: Memory, filters: Any, expected: str) -> None:
    found = memory.get_all(filters=SCOPE | filters)["results"]
    searched = memory.search("red green blue", filters=SCOPE | filters, threshold=0)["results"]

    assert sorted(each["memory"] for each in found) == expected.split()
    assert sorted(each["memory"] for each in searched) == expected.split()


def test_the_first_program_of_mem0s_documentation(store: Wellkept) -> None:
    """A search without a threshold returns the best memories, however general the question is."""
    memory = Memory(store)
    talk = [
        {"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming."},
        {"role": "assistant", "content": "Hey Alex! I'll remember your interests."},
    ]
    memory.add(talk, user_id="alex", metadata={"topic": "hobbies"})

    found = memory.search("What do you know about me?", filters={"user_id": "alex"})["results"]
    assert [(each["memory"], each["metadata"]) for each in found] == [
        ("Hi, I'm Alex.", {"topic": "hobbies"}),
        ("I love basketball and gaming.", {"topic": "hobbies"}),
    ]
    assert memory.search("What do you know about me?", filters={"user_id": "alex"}, threshold=0.5)["results"] == []
    # Metadata is part of the first version, not an edit of it.
    assert found[0]["created_at"] == found[0]["updated_at"]


def test_parts_of_messages_are_stored_as_text(store: Wellkept) -> None:
    memory = Memory(store)
    parts = [{"type": "text", "text": "This is my cat."}, {"type": "image_url", "image_url": {"url": "cat.png"}}]
    talk = [{"role": "user", "content": parts}, {"role": "assistant", "content": " "}]

    added = memory.add(talk, user_id="parts", infer=False)["results"]
    assert [(each["memory"], each["role"]) for each in added] == [("This is my cat.", "user")]


def test_a_user_finds_neither_what_belongs_to_others_nor_to_nobody(memory: Memory) -> None:
    assert [each["memory"] for each in memory.get_all(filters={"user_id": "kim"})["results"]] == ["foreign"]
    everything = memory.get_all(filters={"agent_id": "atlas"})["results"]
    assert sorted(each["memory"] for each in everything) == ["blue", "green", "of nobody"]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda memory: memory.search("x", user_id="lena"), "Pass user_id in `filters`"),
        (lambda memory: memory.search("", filters=SCOPE), "query"),
        (lambda memory: memory.search("x", filters={"n": 1}), "At least one of user_id"),
        (lambda memory: memory.search("x", filters=SCOPE | {"n": {"contains": "1"}}), "no filter operator 'contains'"),
        (lambda memory: memory.search("x", filters=SCOPE | {"OR": {"n": 1}}), "OR takes a list"),
        (lambda memory: memory.search("x", filters=SCOPE, top_k=-1), "top_k"),
        (lambda memory: memory.search("x", filters=SCOPE, reference_date="2026"), "reference_date"),
        (lambda memory: memory.add("x"), "At least one of user_id"),
        (lambda memory: memory.add("x", user_id="a b"), "without spaces"),
        (lambda memory: memory.add("x", user_id="a", memory_type="procedural_memory"), "memory_type"),
        (lambda memory: memory.add("x", user_id="a", expiration_date="soon"), "2026-12-31"),
        (lambda memory: memory.update("atlas/m-1"), "Pass the text"),
        (lambda memory: memory.update("atlas/m-99", text="x"), "not found"),
        (lambda memory: memory.delete("nonsense"), "not found"),
        (lambda memory: memory.delete("no agent/m-1"), "not found"),
        (lambda memory: memory.add(7, user_id="a"), "messages is a text"),
    ],
)
def test_refusals_are_value_errors_that_say_what_to_do(memory: Memory, call: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        call(memory)


def test_unknown_ids(memory: Memory) -> None:
    assert [memory.get(id) for id in ("", "atlas/m-99", "no agent/m-1", "../m-1")] == [None] * 4
    assert memory.history("no agent/m-1") == []


def test_any_user_and_any_run(memory: Memory) -> None:
    users = memory.get_all(filters={"user_id": "*", "agent_id": "atlas"})["results"]

    assert sorted(each["memory"] for each in users) == ["blue", "green"]
    assert memory.get_all(filters={"run_id": "*"})["results"] == []


def test_expired_memories_are_hidden(store: Wellkept) -> None:
    memory = Memory(store)
    added = memory.add("Old", user_id="old", infer=False, expiration_date="2020-01-01")["results"][0]
    scope: Any = {"filters": {"user_id": "old"}}

    assert memory.get_all(**scope)["results"] == memory.search("Old", **scope)["results"] == []
    assert len(memory.get_all(**scope, show_expired=True)["results"]) == 1
    memory.update(added["id"], expiration_date=None)
    assert "expiration_date" not in memory.get_all(**scope)["results"][0]


def test_a_correction_reports_what_it_replaces(store: Wellkept) -> None:
    memory = Memory(store)
    said = "I live in Paris.", "I moved to Oslo, I no longer live in Paris."

    first, second = (memory.add(text, user_id="mover", metadata={"n": 1})["results"] for text in said)

    assert [each["event"] for each in first] == ["ADD"]
    assert {"ADD"} <= {each["event"] for each in second} <= {"ADD", "DELETE", "UPDATE"}
    left = [each["memory"] for each in memory.get_all(filters={"user_id": "mover"})["results"]]
    gone = [each["memory"] for each in second if each["event"] == "DELETE"]
    assert not set(left) & set(gone)


def test_explained_results(memory: Memory) -> None:
    (best, *_) = memory.search("green", filters=SCOPE, explain=True)["results"]

    assert best["memory"] == "green"
    assert best["score"] == best["score_details"]["similarity"]


def test_a_configuration_of_mem0_names_a_model_and_an_embedder() -> None:
    settings = read_config(
        {
            "llm": {
                "provider": "openai",
                "config": {"model": "small", "api_key": "k", "openai_base_url": "http://x/v1"},
            },
            "embedder": {"provider": "openai", "config": {"model": "vectors"}},
            "vector_store": {"provider": "qdrant", "config": {"path": "/tmp/q"}},
            "version": "v1.1",
            "wellkept": {"agent": "atlas"},
        }
    )

    assert isinstance(settings, Settings)
    assert (settings.openai_model, settings.openai_base_url) == ("small", "http://x/v1")
    assert (settings.embedder, settings.agent) == ("openai:vectors", "atlas")


def test_async(store: Wellkept) -> None:
    async def run() -> Any:
        memory = AsyncMemory(store)
        added = await memory.add("Tea", user_id="async", infer=False)
        return await memory.get(added["results"][0]["id"])

    assert asyncio.run(run())["memory"] == "Tea"


def test_the_example_of_the_page(tmp_path: Path) -> None:
    assert run_example("mem0", tmp_path) == read_expected("mem0")
