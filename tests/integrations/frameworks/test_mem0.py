"""One program on mem0ai and on wellkept: the same arguments, and answers of the same shape."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"MEM0_TELEMETRY": "False"}

import mem0
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel

from wellkept import Wellkept
from wellkept.integrations.mem0 import AsyncMemory, Memory

pytestmark = pytest.mark.slow

METHODS = "add search get get_all update delete delete_all history reset from_config close".split()


@pytest.mark.parametrize(("ours", "theirs"), [(Memory, mem0.Memory), (AsyncMemory, mem0.AsyncMemory)])
@pytest.mark.parametrize("method", METHODS)
def test_the_arguments_are_those_of_mem0(ours: type, theirs: type, method: str) -> None:
    def arguments(of: type) -> list[tuple[str, Any]]:
        found = inspect.signature(getattr(of, method)).parameters.values()
        # The one of AsyncMemory.add is accepted, and not shown.
        return [(each.name, each.kind) for each in found if each.name != "llm"]

    assert arguments(ours) == arguments(theirs)
    assert inspect.iscoroutinefunction(getattr(ours, method)) == inspect.iscoroutinefunction(getattr(theirs, method))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("mem0")
    answer = '{"memory": [{"id": "0", "text": "Is allergic to penicillin", "attributed_to": "user"}]}'
    config = {
        "vector_store": {"provider": "qdrant", "config": {"path": str(folder / "q"), "embedding_model_dims": 32}},
        "embedder": {"provider": "langchain", "config": {"model": DeterministicFakeEmbedding(size=32)}},
        "llm": {"provider": "langchain", "config": {"model": FakeListChatModel(responses=[answer])}},
        "history_db_path": str(folder / "history.db"),
    }
    memory = mem0.Memory.from_config(config)
    yield memory
    memory.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db"
    with Memory(Wellkept(request.getfixturevalue("postgres_url") if request.param == "postgres" else url)) as memory:
        yield memory


def shape(value: Any, key: str = "") -> Any:
    """Return the keys and types of an answer. Texts of messages and metadata stay what they are."""
    if isinstance(value, dict):
        if key == "metadata":
            return value
        return {name: shape(each, name) for name, each in sorted(value.items()) if name != "attributed_to"}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return value if key in ("event", "message", "role", "actor_id", "memory", "user_id") else type(value).__name__


def run_program(memory: Any) -> list[Any]:
    """Use everything, as a program written for mem0 does."""
    scope = {"filters": {"user_id": "lena"}}
    added = memory.add(
        [{"role": "user", "content": "Tea, please", "name": "Lena"}, {"role": "system", "content": "hidden"}],
        user_id="lena",
        agent_id="atlas",
        run_id="r-1",
        metadata={"topic": "drinks", "n": 3},
        infer=False,
    )
    id = added["results"][0]["id"]
    memory.add("Drives a red car", user_id="kim", infer=False, metadata={"topic": "cars"})
    memory.add("Gone", user_id="lena", infer=False, expiration_date="2020-01-01")
    answers = [
        added,
        memory.get(id),
        memory.get_all(**scope),
        memory.get_all(**scope, show_expired=True)["results"].__len__(),
        memory.get_all(filters={"user_id": "lena", "topic": "drinks", "n": {"gte": 3, "lt": 4}}),
        memory.get_all(filters={"agent_id": "atlas"}),
        memory.get_all(filters={"run_id": "r-1"}),
        memory.search("Tea, please", threshold=0.0, **scope),
        memory.update(id, text="Coffee, please", metadata={"n": 4}),
        memory.get(id),
        memory.history(id),
        memory.delete(id),
        memory.get(id),
        memory.delete_all(user_id="kim"),
        memory.get_all(filters={"user_id": "kim"}),
    ]
    for wrong in (
        lambda: memory.delete(id),
        lambda: memory.search("x", user_id="lena"),
        lambda: memory.search("x", filters={}),
        lambda: memory.search(" ", **scope),
        lambda: memory.get_all(filters={"user_id": "a b"}),
        lambda: memory.delete_all(),
        lambda: memory.update(id),
        lambda: memory.add("x", user_id="lena", expiration_date="soon"),
    ):
        with pytest.raises(ValueError, match=r"."):
            wrong()
    answers.append(memory.reset())
    return answers


def test_one_program_gets_answers_of_the_same_shape(real: Any, ours: Memory) -> None:
    expected, got = run_program(real), run_program(ours)

    for mine, theirs in zip(got, expected, strict=True):
        assert shape(mine) == shape(theirs)


def test_facts_have_the_same_shape(real: Any, ours: Memory) -> None:
    said = [{"role": "user", "content": "I'm allergic to penicillin."}, {"role": "assistant", "content": "Noted."}]
    expected, got = (memory.add(said, user_id="ann", metadata={"topic": "health"}) for memory in (real, ours))

    assert [sorted(each) for each in got["results"]] == [sorted(each) for each in expected["results"]]
    assert {each["event"] for each in got["results"]} == {"ADD"}
    (fact,) = ours.get_all(filters={"user_id": "ann"})["results"]
    assert (fact["memory"], fact["metadata"]) == ("I'm allergic to penicillin.", {"topic": "health"})


def test_a_configuration_of_mem0_opens_a_store(tmp_path: Path) -> None:
    config = mem0.configs.base.MemoryConfig()
    section = {"wellkept": {"url": f"sqlite:///{tmp_path}/memory.db"}}

    with Memory.from_config({**config.model_dump(), **section, "embedder": {}}) as memory:
        memory.add("Likes tea", user_id="lena", infer=False)
        assert len(memory.get_all(filters={"user_id": "lena"})["results"]) == 1


def test_async(tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with AsyncMemory(Wellkept(f"sqlite:///{tmp_path}/memory.db")) as memory:
            await asyncio.gather(*(memory.add(f"Fact {n}", user_id="lena", infer=False, llm=None) for n in range(5)))
            found = await memory.search("Fact 3", filters={"user_id": "lena"}, top_k=1)
            return [each["memory"] for each in found["results"]]

    assert asyncio.run(run()) == ["Fact 3"]
