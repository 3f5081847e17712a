"""WellkeptStore against langgraph, langmem and langchain as they are published today.

langgraph publishes no suite for stores (`langgraph-checkpoint-conformance` tests checkpointers), so its own
`InMemoryStore` says what is right: the same operations on both have the same results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph, add_messages
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from tests.integrations.examples import read_expected, run_example
from tests.server.live import serving
from wellkept import Client, Wellkept
from wellkept.errors import Invalid
from wellkept.integrations.langchain import WellkeptMiddleware
from wellkept.integrations.langgraph import WellkeptStore, make_context_node

pytestmark = pytest.mark.slow


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture(params=["sqlite", "postgres"])
def wellkept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wellkept]:
    url = f"sqlite:///{tmp_path}/memory.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    with Wellkept(url, clock=Clock()) as store:
        yield store


@pytest.fixture
def store(wellkept: Wellkept, request: pytest.FixtureRequest) -> WellkeptStore:
    return WellkeptStore(wellkept.agent("".join(filter(str.isalnum, request.node.name))))


SCALARS = st.sampled_from([None, True, False, 0, 1, 2.5, -3, "", "a", "b", "Oslo", "2"])
VALUES = st.dictionaries(
    st.sampled_from(["a", "b", "odd key.x", "€"]),
    st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from("xy"), SCALARS, max_size=2)),
    max_size=3,
)
NAMES = st.sampled_from(["users", "7", "docs", "a/b", "100%"])
NAMESPACES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
PLACES = st.tuples(NAMESPACES, st.sampled_from(["k1", "k2", "k 3"]))
EXACT = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=2),
    st.builds(lambda value: {"$eq": value}, SCALARS),
    st.builds(lambda value: {"$ne": value}, SCALARS),
    st.dictionaries(st.sampled_from("xy"), SCALARS, min_size=1, max_size=2),
)
FILTERS = st.dictionaries(st.sampled_from(["a", "b", "odd key.x", "€", "none"]), EXACT, max_size=2)
PATTERNS = st.lists(st.one_of(NAMES, st.just("*")), min_size=1, max_size=3).map(tuple)


def has_no_bool(value: Any) -> bool:
    """In JSON true is not 1, in Python it is: LangGraph's stores do not agree about it among themselves."""
    if isinstance(value, dict):
        return all(map(has_no_bool, value.values()))
    return all(map(has_no_bool, value)) if isinstance(value, list) else not isinstance(value, bool)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    with Wellkept(f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db") as store:
        yield store


def names(found: Any) -> Any:
    return sorted((item.namespace, item.key, repr(item.value)) for item in found)


@given(
    puts=st.lists(st.tuples(PLACES, st.one_of(VALUES, st.none())), max_size=6),
    prefix=st.one_of(st.just(()), NAMESPACES),
    filter=FILTERS,
    conditions=st.lists(st.tuples(st.sampled_from(["prefix", "suffix"]), PATTERNS), max_size=3),
    max_depth=st.one_of(st.none(), st.integers(1, 3)),
)
def test_the_same_operations_have_the_results_of_langgraphs_own_store(
    memory: Wellkept, puts: Any, prefix: Any, filter: Any, conditions: Any, max_depth: Any
) -> None:
    test_the_same_operations_have_the_results_of_langgraphs_own_store.runs += 1  # type: ignore[attr-defined]
    ours = WellkeptStore(memory.agent(f"run-{test_the_same_operations_have_the_results_of_langgraphs_own_store.runs}"))  # type: ignore[attr-defined]
    theirs = InMemoryStore()
    plain = all(has_no_bool(value) for _, value in puts)
    reads = [
        SearchOp(prefix, filter=filter if plain and has_no_bool(filter) else None, limit=50),
        ListNamespacesOp(tuple(MatchCondition(*each) for each in conditions), max_depth=max_depth),
        *(GetOp(*place) for place, _ in puts),
    ]
    for stored in (ours, theirs):
        stored.batch([PutOp(*place, value) for place, value in puts])

    # A namespace whose last item is deleted stays in the other store.
    for empty in [namespace for namespace, items in theirs._data.items() if not items]:
        del theirs._data[empty]

    search, listed, *got = ours.batch(reads)
    expected_search, expected_listed, *expected_got = theirs.batch(reads)

    assert names(search) == names(expected_search)
    assert sorted(listed) == expected_listed
    assert [item and item.value for item in got] == [item and item.value for item in expected_got]


test_the_same_operations_have_the_results_of_langgraphs_own_store.runs = 0  # type: ignore[attr-defined]


def test_reads_of_a_batch_see_what_was_there_before_it(store: WellkeptStore) -> None:
    store.put(("d",), "k", {"n": 1})

    results = store.batch([PutOp(("d",), "k", {"n": 2}), GetOp(("d",), "k"), PutOp(("d",), "k", {"n": 3})])

    assert [item and item.value for item in results] == [None, {"n": 1}, None]
    assert store.get(("d",), "k").value == {"n": 3}


def test_comparisons_and_pages(store: WellkeptStore) -> None:
    store.batch([PutOp(("d",), f"{n:03}", {"n": n, "even": n % 2 == 0, "tags": ["x", str(n)]}) for n in range(120)])

    found = store.search(("d",), filter={"n": {"$gte": 10, "$lt": 100.5}, "even": True}, limit=5, offset=2)
    others = store.search(("d",), filter={"n": {"$ne": 119}}, limit=200)

    assert [item.value["n"] for item in found] == [96, 94, 92, 90, 88]
    assert len(others) == 119
    assert [item.key for item in store.search((), limit=3, offset=118)] == ["001", "000"]
    assert [item.key for item in store.search(("d",), filter={"tags": ["x", "7"]})] == ["007"]
    assert store.search(("d",), filter={"tags": "x"}) == []
    assert store.search(("d",), limit=0) == []


def test_an_unknown_operator_is_named(store: WellkeptStore) -> None:
    store.put(("d",), "k", {"n": 1})

    with pytest.raises(Invalid, match=r"no filter operator '\$regex'"):
        store.search(("d",), filter={"n": {"$regex": "1"}})


def test_a_query_ranks_by_meaning_and_by_the_named_fields(store: WellkeptStore) -> None:
    store.put(("d",), "tea", {"text": "She drinks green tea", "secret_note": "zebra"}, index=["text"])
    store.put(
        ("d",),
        "car",
        {"text": "The car needs new tyres", "more": [{"t": "first"}, {"t": "zebra"}]},
        index=["more[-1].t"],
    )
    store.put(("d",), "not", {"text": "zebra zebra"}, index=False)

    found = store.search(("d",), query="zebra")

    assert found[0].key == "car"
    assert "not" not in [item.key for item in found]
    assert found[0].score is not None
    assert found == sorted(found, key=lambda item: -(item.score or 0))
    assert store.search(("d",), query="What does she drink?")[0].key == "tea"


def test_default_fields(wellkept: Wellkept) -> None:
    store = WellkeptStore(wellkept.agent("fields"), fields=["title"])
    store.put(("d",), "one", {"title": "Gardening", "body": "zebra"})
    store.put(("d",), "two", {"title": "Zebra", "body": "gardening"})

    assert store.search(("d",), query="zebra")[0].key == "two"


def test_lifetimes(tmp_path: Path) -> None:
    clock = Clock()
    with Wellkept(f"sqlite:///{tmp_path}/ttl.db", clock=clock) as wellkept:
        store = WellkeptStore(wellkept.agent("a"), ttl={"default_ttl": 10, "refresh_on_read": True})
        store.put(("d",), "default", {"n": 1})
        store.put(("d",), "long", {"n": 2}, ttl=100)
        store.put(("d",), "for-ever", {"n": 3}, ttl=None)
        clock.now += timedelta(minutes=6)
        assert store.get(("d",), "default", refresh_ttl=True) is not None
        clock.now += timedelta(minutes=6)
        assert store.get(("d",), "default", refresh_ttl=False) is not None
        assert len(store.search(("d",), filter={"n": {"$gt": 1}}, refresh_ttl=False)) == 2
        clock.now += timedelta(minutes=6)
        assert store.get(("d",), "default") is None
        # What a filter compares and does not return does not live longer.
        assert [item.key for item in store.search(("d",), filter={"n": {"$ne": 2}})] == ["for-ever"]
        clock.now += timedelta(minutes=90)
        assert [item.key for item in store.search(("d",))] == ["for-ever"]
        assert store.list_namespaces() == [("d",)]


def test_namespaces_are_checked_by_langgraph(store: WellkeptStore) -> None:
    for wrong in ((), ("a.b",), ("",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            store.put(wrong, "k", {"n": 1})


async def use_async(store: WellkeptStore) -> None:
    await asyncio.gather(*(store.aput(("d",), str(n), {"n": n}) for n in range(20)))
    assert {item.value["n"] for item in await store.asearch(("d",), limit=50)} == set(range(20))
    assert (await store.aget(("d",), "7")).value == {"n": 7}
    await store.adelete(("d",), "7")
    assert await store.aget(("d",), "7") is None
    assert await store.alist_namespaces(prefix=("d",)) == [("d",)]


def test_async(store: WellkeptStore) -> None:
    asyncio.run(use_async(store))


def test_each_user_has_items_of_his_own(wellkept: Wellkept) -> None:
    atlas = wellkept.agent("users")
    lena, kim = (WellkeptStore(atlas.for_user(user)) for user in ("lena", "kim"))
    lena.items.put(("d",), "k", {"n": 1})

    assert kim.get(("d",), "k") is None
    assert lena.get(("d",), "k").value == {"n": 1}


def test_a_client_has_the_same_store(wellkept: Wellkept) -> None:
    key = wellkept.tenant().keys.create("write").key
    with serving(wellkept, no_auth=False) as address, Client(address, key) as client:
        store = WellkeptStore(client.agent("client"))
        store.batch([PutOp(("d",), str(n), {"n": n, "text": f"fact {n}"}) for n in range(5)])
        store.delete(("d",), "0")

        assert [item.key for item in store.search(("d",), filter={"n": {"$gte": 2, "$ne": 3}})] == ["4", "2"]
        assert store.get(("d",), "1").value == {"n": 1, "text": "fact 1"}
        assert store.list_namespaces() == [("d",)]


def test_langmems_tools_work_on_it(store: WellkeptStore) -> None:
    manage = create_manage_memory_tool(("memories", "{user}"), store=store)
    search = create_search_memory_tool(("memories", "{user}"), store=store, response_format="content_and_artifact")
    config = {"configurable": {"user": "lena"}}

    manage.invoke({"content": "Lena prefers dark mode", "action": "create"}, config)
    (stored,) = store.search(("memories", "lena"))
    manage.invoke({"content": "Lena prefers light mode", "action": "update", "id": stored.key}, config)
    found = asyncio.run(search.ainvoke({"query": "Which mode does she like?"}, config))

    assert stored.value["content"] == "Lena prefers dark mode"
    assert "light mode" in found
    assert "dark" not in found
    manage.invoke({"action": "delete", "id": stored.key}, config)
    assert store.search(("memories",)) == []


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    context: str


def test_a_node_adds_the_context_to_a_graph(wellkept: Wellkept) -> None:
    atlas = wellkept.agent("node")
    atlas.remember("Prefers tabs over spaces", user="lena")
    graph = StateGraph(State)
    graph.add_node("remember", make_context_node(atlas, system_prompt="Be brief."))
    graph.add_edge(START, "remember")
    runnable = graph.compile()
    question = {"messages": [HumanMessage("Which indentation do I use?")]}

    lena, kim = (
        runnable.invoke(question, {"configurable": {"thread_id": f"t-{user}", "user_id": user}})["context"]
        for user in ("lena", "kim")
    )

    assert lena.startswith("Be brief.")
    assert "Prefers tabs over spaces" in lena
    assert "tabs" not in kim
    with pytest.raises(Invalid, match="thread_id"):
        runnable.invoke(question)


class Model(GenericFakeChatModel):
    """Scripted model that keeps what it was asked."""

    asked: list[Any] = []  # noqa: RUF012

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_middleware_recalls_before_and_remembers_after(wellkept: Wellkept, is_async: bool) -> None:
    atlas = wellkept.agent(f"middleware-{is_async}")
    atlas.remember("Lena is allergic to penicillin", user="lena")
    model = Model(messages=iter([AIMessage("Not penicillin."), AIMessage("In Oslo.")]), asked=[])
    agent = create_agent(
        model,
        system_prompt="You are a nurse.",
        middleware=[WellkeptMiddleware(atlas, remember=True)],
        checkpointer=InMemorySaver(),
    )

    def ask(thread: str, message: str) -> None:
        given, config = (
            {"messages": [HumanMessage(message)]},
            {"configurable": {"thread_id": f"{atlas.owner.agent}-{thread}", "user_id": "lena"}},
        )
        asyncio.run(agent.ainvoke(given, config)) if is_async else agent.invoke(given, config)

    ask("1", "Which antibiotic am I allergic to? I live in Oslo now.")
    ask("2", "Where do I live?")

    (first, *_), (second, *_) = model.asked
    assert first.content.startswith("You are a nurse.")
    assert "allergic to penicillin" in first.content
    assert "I live in Oslo" in second.content
    assert [message.content for message in atlas.sessions.messages(f"{atlas.owner.agent}-1")] == [
        "Which antibiotic am I allergic to? I live in Oslo now.",
        "Not penicillin.",
    ]


@pytest.mark.parametrize(
    "message", ["a \x00 in \ud800 it", "long " * 50_000, " ", f"My key is AKIA{'IOSFODNN7EXAMPLQ'}"]
)
def test_no_message_costs_the_answer_of_a_run(wellkept: Wellkept, message: str) -> None:
    agent = create_agent(
        Model(messages=iter([AIMessage("Fine.")]), asked=[]), middleware=[WellkeptMiddleware(wellkept.agent("odd"))]
    )
    answer = agent.invoke({"messages": [HumanMessage(message)]}, {"configurable": {"thread_id": "odd"}})
    assert answer["messages"][-1].text == "Fine."


def test_a_turn_that_is_refused_does_not_cost_the_answer(wellkept: Wellkept, caplog: Any) -> None:
    atlas = wellkept.agent("taken")
    atlas.log_turn("taken", user="Hi", assistant="Hello", user_id="lena")
    agent = create_agent(Model(messages=iter([AIMessage("Fine.")]), asked=[]), middleware=[WellkeptMiddleware(atlas)])
    config: Any = {"configurable": {"thread_id": "taken", "user_id": "kim"}}
    assert agent.invoke({"messages": [HumanMessage("Hi")]}, config)["messages"][-1].text == "Fine."
    assert "was not remembered" in caplog.text
    assert len(atlas.sessions.messages("taken")) == 2


def test_the_example_of_the_page(tmp_path: Path) -> None:
    assert run_example("langgraph", tmp_path) == read_expected("langgraph")
