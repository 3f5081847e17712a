"""Adapters of frameworks that are not installed here, with types of the same structure.

tests/integrations/frameworks runs them with the frameworks themselves.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from wellkept import Wellkept
from wellkept.errors import Invalid


class GetOp(NamedTuple):
    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class PutOp(NamedTuple):
    namespace: tuple[str, ...]
    key: str
    value: Any
    index: Any = None
    ttl: float | None = None


class SearchOp(NamedTuple):
    namespace_prefix: tuple[str, ...]
    filter: Any = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class MatchCondition(NamedTuple):
    match_type: str
    path: tuple[str, ...]


class ListNamespacesOp(NamedTuple):
    match_conditions: Any = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


class Structure(SimpleNamespace):
    """A record of a framework: it has the fields it is made with."""


class Interface(ABC):  # noqa: B024
    """A class that an adapter extends."""


@dataclass
class Request:
    messages: Any
    system_prompt: str | None = None
    system_message: Any = None

    def override(self, **changes: Any) -> Request:
        return replace(self, **changes)


@dataclass
class Message:
    text: str
    type: str = "system"


@dataclass
class Part:
    text: str | None = None
    thought: bool = False


@dataclass
class Content:
    parts: list[Part] = field(default_factory=list)


CONFIG = {"configurable": {"thread_id": "t-1", "user_id": "lena"}}
MODULES: dict[str, dict[str, Any]] = {
    "langchain.agents.middleware": {
        "AgentMiddleware": Interface,
        "AgentState": dict,
        "ModelRequest": Request,
        "ModelResponse": Any,
    },
    "langchain_core.messages": {"SystemMessage": Message},
    "langchain_core.runnables": {"RunnableConfig": dict},
    "langgraph.config": {"get_config": lambda: CONFIG},
    "langgraph.runtime": {"Runtime": Any},
    "langgraph.store.base": {
        **{each.__name__: each for each in (GetOp, PutOp, SearchOp, MatchCondition, ListNamespacesOp)},
        "BaseStore": Interface,
        "Item": Structure,
        "SearchItem": Structure,
        "Op": Any,
        "Result": Any,
        "TTLConfig": dict,
    },
    "google.adk.events.event": {"Event": Any},
    "google.adk.memory.base_memory_service": {"BaseMemoryService": Interface, "SearchMemoryResponse": Structure},
    "google.adk.memory.memory_entry": {"MemoryEntry": Structure},
    "google.adk.sessions.session": {"Session": Any},
    "google.genai.types": {"Content": Content, "Part": Part},
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import an adapter as if the frameworks were installed."""

    def place(name: str, module: ModuleType | None) -> None:
        monkeypatch.setitem(sys.modules, name, module)

    for path in MODULES:
        parts = path.split(".")
        for end in range(1, len(parts)):
            place(".".join(parts[:end]), ModuleType(parts[0]))
    for path, content in MODULES.items():
        module = ModuleType(path)
        vars(module).update(content)
        place(path, module)
    for name in ("adk", "langchain", "langgraph"):
        # What is imported here is forgotten afterwards.
        place(f"wellkept.integrations.{name}", None)
        del sys.modules[f"wellkept.integrations.{name}"]
    return lambda name: importlib.import_module(f"wellkept.integrations.{name}")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def wellkept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db"
    with Wellkept(request.getfixturevalue("postgres_url") if request.param == "postgres" else url) as store:
        yield store


def test_a_langgraph_store_answers_every_operation(load: Any, wellkept: Wellkept) -> None:
    store = load("langgraph").WellkeptStore(wellkept.agent("store"), fields=["text"])
    values = {
        "tea": {"text": "green tea", "n": 1, "tags": ["a"]},
        "car": {"text": "a red car", "n": 2, "deep": {"x": None}},
    }

    def find(**options: Any) -> list[str]:
        ((*found,),) = store.batch([SearchOp(("d",), **options)])
        return [item.key for item in found]

    assert store.batch(
        [GetOp(("d",), "tea"), *(PutOp(("d", key), key, each, ttl=5) for key, each in values.items())]
    ) == [
        None,
        None,
        None,
    ]
    (got, missing) = asyncio.run(store.abatch([GetOp(("d", "tea"), "tea"), GetOp(("d",), "no", False)]))
    assert (got.value, got.namespace, missing) == (values["tea"], ("d", "tea"), None)
    assert find(query="something to drink, tea")[0] == "tea"
    assert find(limit=1, offset=1) == ["tea"]
    assert find(filter={"n": {"$gt": 1, "$lte": 2.0}}) == ["car"]
    assert find(filter={"tags": ["a"]}) == ["tea"]
    assert find(filter={"deep": {"x": {"$eq": None}}}) == ["car"]
    assert find(filter={"n": {"$ne": 1}, "text": {"$lt": "b"}}) == ["car"]
    with pytest.raises(Invalid, match="no filter operator"):
        find(filter={"n": {"$in": [1]}})
    both = (MatchCondition("prefix", ("*",)), MatchCondition("prefix", ("d", "*")), MatchCondition("suffix", ("tea",)))
    clash = (MatchCondition("prefix", ("d",)), MatchCondition("prefix", ("e",)))
    assert store.batch([ListNamespacesOp(both), ListNamespacesOp(clash), ListNamespacesOp(max_depth=1)]) == [
        [("d", "tea")],
        [],
        [("d",)],
    ]
    with pytest.raises(Invalid, match="prefix or suffix"):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("d",)),))])
    with pytest.raises(Invalid, match="no operation int"):
        store.batch([7])
    store.batch([PutOp(("d", "tea"), "tea", None)])
    assert find() == ["car"]


def test_a_filter_that_compares_too_many_items_says_so(
    load: Any, wellkept: Wellkept, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("langgraph")
    store = module.WellkeptStore(wellkept.agent("many"))
    store.batch([PutOp(("d",), str(n), {"n": n}) for n in range(12)])
    monkeypatch.setattr(module, "MAX_OFFSET", 2)

    with pytest.raises(Invalid, match="Narrow the namespace"):
        store.batch([SearchOp(("d",), filter={"n": {"$ne": None}, "x": None, "y": {"$ne": None}}, limit=3)])


def test_a_langgraph_node_and_middleware_show_the_memory(load: Any, wellkept: Wellkept) -> None:
    atlas = wellkept.agent("nurse")
    atlas.remember("Lena is allergic to penicillin", user="lena")
    asked = [Message("What am I allergic to?", "human")]
    add_context = load("langgraph").make_context_node(atlas, system_prompt="Be kind.")
    middleware = load("langchain").WellkeptMiddleware(atlas, remember=False)

    context = add_context({"messages": asked}, CONFIG)["context"]
    plain = middleware.wrap_model_call(Request(asked, "Be kind."), lambda request: request)
    awaited = asyncio.run(middleware.awrap_model_call(Request(asked, "Be kind."), answer))
    middleware.after_agent({"messages": [*asked, Message("Penicillin.", "ai")]}, None)
    later = [Message("Penicillin.", "ai"), Message("And now?", "human"), Message("", "ai")]
    asyncio.run(middleware.aafter_agent({"messages": [*asked, *later]}, None))

    assert "Lena is allergic to penicillin" in context
    assert "Lena is allergic to penicillin" in plain.system_message.text
    assert plain.messages == asked
    assert awaited.system_message.text.startswith("Be kind.")
    assert [message.content for message in atlas.sessions.messages("t-1")] == ["What am I allergic to?", "Penicillin."]
    with pytest.raises(Invalid, match="thread_id"):
        add_context(SimpleNamespace(messages=asked), {})


async def answer(request: Request) -> Request:
    return request


def test_adks_service_stores_searches_and_deletes(load: Any, wellkept: Wellkept) -> None:
    service = load("adk").WellkeptMemoryService(wellkept)
    of_lena = {"app_name": "ward", "user_id": "lena"}

    def event(id: str, text: str) -> Any:
        return Structure(id=id, author="user", content=Content([Part(text), Part("hm", True)]), timestamp=1.76e9)

    def find(query: str) -> Any:
        return asyncio.run(service.search_memory(**of_lena, query=query)).memories

    events = [
        event("1", "I am allergic to penicillin"),
        event("2", "What am I allergic to?"),
        event("3", "My password is hunter2-Xk99-qq81-zz"),
        Structure(id="4", author="model", content=None, timestamp=1.76e9),
    ]
    for _ in range(2):
        asyncio.run(service.add_session_to_memory(Structure(**of_lena, id="s-1", events=events)))
    entry = Structure(
        id=None, author=None, timestamp=None, custom_metadata={"n": 1}, content=Content([Part("Likes tea")])
    )
    asyncio.run(service.add_memory(**of_lena, memories=[entry]))

    (found, *_) = find("What is she allergic to?")
    assert [part.text for part in found.content.parts] == ["I am allergic to penicillin"]
    assert find("Which drink does she like, tea?")[0].custom_metadata == {"n": 1}
    assert find(" ") == []
    for id in (found.id, "m-999", None):
        asyncio.run(service.delete_memory(**of_lena, memory_id=id))
    asyncio.run(service.add_session_to_memory(Structure(**of_lena, id="s-1", events=events)))
    assert "penicillin" not in str(find("What is she allergic to?"))
