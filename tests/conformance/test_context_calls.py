"""What an agent was shown at its latest calls, and what tools said in a session."""

from __future__ import annotations

import pytest

from tests.conformance.examples import EARLIER, NOW, agent, call, note, texts
from wellkept.errors import NotFound
from wellkept.model import Block, BlockItem, Kind, Owner, Role, Truncation
from wellkept.store.sqlstore import SqlStore


@pytest.fixture(autouse=True)
def known(store: SqlStore, ann: Owner) -> None:
    store.add_agent(agent(ann))


def test_a_call_comes_back_as_it_was(store: SqlStore, ann: Owner) -> None:
    item = BlockItem(id="m-7", source="memory", score=0.1 + 0.2, digest="ab12", left_out="budget")
    truncation = Truncation(
        step="reference",
        block="conversation",
        tokens_removed=12,
        sources=("turn 1", "turn 2"),
        message="Turns 1 to 2 moved behind a reference.",
        references=("turns-1",),
        dropped_references=("log-1",),
    )
    empty = Truncation(step="drop", block="notes", tokens_removed=0, sources=(), message="x")
    blocks = (Block(name="memories", tokens=40, items=(item, BlockItem(id="m-8"))), Block(name="message", tokens=5))
    made = call(ann, blocks=blocks, truncations=(truncation, empty), layout="cache_stable")

    assert store.add_context_calls(ann, [made], keep=5)

    assert store.get_context_call(ann, "c-1") == made
    assert store.list_context_calls(ann) == [made]


def test_prompts_are_listed_with_one_item_or_none(store: SqlStore, ann: Owner) -> None:
    both = Block(name="memories", tokens=40, items=(BlockItem(id="m-7", left_out="budget"), BlockItem(id="m-77")))
    other = Block(name="notes", tokens=4, items=(BlockItem(id="m-77", digest="m-7"),))
    store.add_context_calls(
        ann, [call(ann, id="c-1", blocks=(both, other)), call(ann, id="c-2", blocks=(other,))], keep=5
    )

    later, found = store.list_context_calls(ann, item="m-7")
    assert [each.items for each in later.blocks] == [()]
    assert [(each.name, each.tokens, each.items) for each in found.blocks] == [
        ("memories", 40, both.items[:1]),
        ("notes", 4, ()),
    ]
    bare = store.list_context_calls(ann, item="")
    assert [(each.id, sum(len(block.items) for block in each.blocks)) for each in bare] == [("c-2", 0), ("c-1", 0)]


def test_the_newest_are_kept_and_listed_first(store: SqlStore, ann: Owner) -> None:
    store.add_context_calls(ann, [call(ann, id=f"c-{n}", session_id=f"s-{n % 2}") for n in range(1, 5)], keep=5)
    store.add_context_calls(ann, [call(ann, id=f"c-{n}", session_id=f"s-{n % 2}") for n in range(5, 9)], keep=5)

    assert [each.id for each in store.list_context_calls(ann)] == ["c-8", "c-7", "c-6", "c-5", "c-4"]
    assert [each.id for each in store.list_context_calls(ann, before="c-7", limit=2)] == ["c-6", "c-5"]
    assert [each.id for each in store.list_context_calls(ann, session_id="s-1")] == ["c-7", "c-5"]
    with pytest.raises(NotFound):
        store.get_context_call(ann, "c-1")


def test_the_same_call_twice_is_kept_once(store: SqlStore, ann: Owner) -> None:
    for _ in range(2):
        store.add_context_calls(ann, [call(ann)], keep=5)

    assert len(store.list_context_calls(ann)) == 1


def test_calls_make_no_agent_and_go_with_theirs(store: SqlStore, ann: Owner) -> None:
    nobody = Owner(ann.tenant, "nobody")
    assert not store.add_context_calls(nobody, [call(nobody)], keep=5)
    assert store.find_agent(nobody) is None

    store.add_context_calls(ann, [call(ann)], keep=5)
    store.delete_agent(ann)
    store.add_agent(agent(ann))
    assert store.list_context_calls(ann) == []


def test_tool_results_are_those_of_the_session_that_are_alive(store: SqlStore, ann: Owner) -> None:
    def result(text: str, **changes: object) -> None:
        given = {"kind": Kind.EPISODE, "role": Role.TOOL_RESULT, "session_id": "s-1", **changes}
        store.add_memory(note(text, ann, **given))

    result("first")
    result("second")
    result("of another session", session_id="s-2")
    result("said by the user", role=Role.USER)
    result("expired", expires_at=EARLIER)
    result("archived", archived_at=EARLIER)
    result("held", held_at=EARLIER)
    result("corrected", valid_to=EARLIER)

    assert texts(store.list_tool_results(ann, "s-1", now=NOW)) == ["second", "first"]
    assert texts(store.list_tool_results(ann, "s-1", now=NOW, limit=1)) == ["second"]
