"""The tools for long texts: storing, reading in parts, finding again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.services.conftest import Clock, on_one_engine
from wellkept.api.agent import AgentMemory
from wellkept.details.capturing import capture_calls
from wellkept.prompt.rules_tokens import estimate_tokens
from wellkept.tools import catalog
from wellkept.tools.guidance import guidance

LOG = "".join(f"2026-01-31T12:00:{n % 60:02}Z INFO step {n} done\n" for n in range(1, 1001)) + "ERROR disk full\n"
NOT_FOUND = "There is no stored text under this key. Copy the key exactly. Or look for it with search_memory."


def stored(memory: AgentMemory, content: str = LOG, **more: Any) -> str:
    answer = memory.call_tool("store_memory", {"content": content, "description": "The nightly build", **more})
    assert answer["ok"] is True
    return str(answer["memory_key"])


@pytest.mark.proves("D2")
def test_store_memory_answers_with_a_key_and_what_to_leave_in_the_context(ann: AgentMemory) -> None:
    answer = ann.call_tool(
        "store_memory", {"content": LOG, "description": "The nightly build", "type": "command_output"}
    )

    key = answer["memory_key"]
    assert answer == {"ok": True, "memory_key": key, "reference": f"[MemoryRef: {key} - The nightly build]"}
    detail = ann.details.get(key)
    assert (detail.type, detail.description, detail.chars) == ("command_output", "The nightly build", len(LOG))


@pytest.mark.proves("D2")
def test_a_key_is_readable_unique_and_not_guessable_by_another_agent(ann: AgentMemory, bob: AgentMemory) -> None:
    keys = [stored(memory) for memory in (ann, bob) for _ in range(20)]

    assert len(set(keys)) == 40
    assert all(re.fullmatch(r"the-nightly-build-[2-9a-z]{8}", key) for key in keys)
    assert bob.call_tool("retrieve_memory", {"memory_key": keys[0]}) == {"ok": False, "error": NOT_FOUND}
    assert bob.call_tool("retrieve_memory", {"memory_key": "the-nightly-build-22222222"})["error"] == NOT_FOUND
    assert keys[0] not in str(bob.call_tool("search_memory", {"query": "nightly build"}))


@pytest.mark.proves("D2")
@pytest.mark.parametrize("way", ["memory_key", "id", "reference"])
def test_retrieve_memory_answers_with_a_page_that_fits_a_prompt_and_says_how_to_go_on(
    ann: AgentMemory, way: str
) -> None:
    key = stored(ann)
    named = {"memory_key": f"[MemoryRef: {key} - The nightly build]"} if way == "reference" else {way: key}

    answer = ann.call_tool("retrieve_memory", named)

    assert answer["content"] == LOG[:4000]
    assert (answer["memory_key"], answer["offset"], answer["total"], answer["next_offset"]) == (key, 0, len(LOG), 4000)
    assert "offset=4000" in answer["remaining"]
    assert estimate_tokens(str(answer)) < 1500
    onwards = ann.call_tool("retrieve_memory", {**named, "offset": answer["next_offset"]})
    assert onwards["content"] == LOG[4000:8000]


@pytest.mark.proves("D2")
@pytest.mark.parametrize(
    ("part", "content"),
    [
        ({"limit": 10}, LOG[:10]),
        ({"limit": 10_000_000}, LOG[:20_000]),
        ({"limit": -5}, LOG[:1]),
        ({"lines": "2-3"}, "".join(LOG.splitlines(keepends=True)[1:3])),
        ({"head": 1}, LOG.splitlines(keepends=True)[0]),
        ({"tail": 1}, "ERROR disk full\n"),
    ],
)
def test_parts_are_read_by_name(ann: AgentMemory, part: dict[str, Any], content: str) -> None:
    assert ann.call_tool("retrieve_memory", {"memory_key": stored(ann), **part})["content"] == content


@pytest.mark.proves("D2")
def test_matches_and_values_are_read_too_and_never_more_than_a_page(ann: AgentMemory) -> None:
    key, answers = stored(ann), stored(ann, '{"items": [{"name": "Ann"}, {"name": "Bob"}]}')

    errors = ann.call_tool("retrieve_memory", {"memory_key": key, "grep": "error", "context": 0})
    assert (errors["matches"], "ERROR disk full" in errors["content"]) == (1, True)
    steps = ann.call_tool("retrieve_memory", {"memory_key": key, "grep": "step"})
    assert (len(steps["content"]) <= 4000, "next_offset" in steps) == (True, True)
    names = ann.call_tool("retrieve_memory", {"memory_key": answers, "json_path": "$.items[*].name"})
    assert ("Bob" in names["content"], names["matches"]) == (True, 2)


@pytest.mark.proves("D2")
def test_search_memory_answers_with_summaries_and_keys(ann: AgentMemory, clock: Clock) -> None:
    first = stored(ann)
    clock.forward(minutes=1)
    ann.details.capture(LOG, source="npm install", session_id="thread-7")

    (npm, build) = ann.call_tool("search_memory", {})["memories"]
    assert (npm["source"], build["memory_key"], build["total"]) == ("npm install", first, len(LOG))
    assert "1 error: line 1,001: ERROR disk full" in build["summary"]
    assert LOG[:200] not in str(build)
    assert ann.call_tool("search_memory", {"query": "nightly"})["memories"] == [build]
    assert ann.call_tool("search_memory", {"thread_id": "thread-7"})["memories"] == [npm]
    assert ann.call_tool("search_memory", {"query": "nightly", "thread_id": "thread-7"})["count"] == 0


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("store_memory", {"content": ""}, "nothing to store"),
        ("store_memory", {"content": "x", "type": "Not a word"}, "short word"),
        ("store_memory", {}, "needs the argument 'content'"),
        ("retrieve_memory", {}, "Name the text by its key"),
        ("retrieve_memory", {"memory_key": "../../etc/passwd"}, NOT_FOUND),
        ("retrieve_memory", {"id": "m-1"}, NOT_FOUND),
    ],
)
@on_one_engine
def test_a_refusal_says_what_to_do(ann: AgentMemory, name: str, arguments: dict[str, Any], sentence: str) -> None:
    answer = ann.call_tool(name, arguments)

    assert answer["ok"] is False
    assert sentence in answer["error"]


@pytest.mark.parametrize("arguments", [{"head": 1, "tail": 1}, {"lines": "last"}, {"offset": -1}, {"grep": "/(/"}])
@on_one_engine
def test_a_part_that_cannot_be_read_is_refused_with_a_sentence(ann: AgentMemory, arguments: dict[str, Any]) -> None:
    answer = ann.call_tool("retrieve_memory", {"memory_key": stored(ann), **arguments})

    assert (answer["ok"], answer["error"].endswith(".")) == (False, True)


def test_store_memory_keeps_the_session_it_ran_in(ann: AgentMemory) -> None:
    kept = ann.call_tool("store_memory", {"content": LOG}, session_id="thread-8")["memory_key"]
    ann.call_tool("store_memory", {"content": LOG})

    found = ann.call_tool("search_memory", {"thread_id": "thread-8"}, session_id="thread-9")["memories"]

    assert [each["memory_key"] for each in found] == [kept]


@pytest.mark.parametrize("name", ["store_memory", "retrieve_memory", "search_memory"])
def test_without_an_agent_there_is_nothing_to_read(name: str) -> None:
    arguments = {"content": "x"} if name == "store_memory" else {}

    assert catalog.call(None, name, arguments)["ok"] is False


@pytest.mark.proves("D2")
def test_the_two_tools_with_like_names_are_told_apart() -> None:
    assert "store_memory" in catalog.TOOLS["memory_store"].description
    assert "memory_store" in catalog.TOOLS["store_memory"].description
    assert [name for name, tool in catalog.TOOLS.items() if tool.set == "details" and tool.is_read_only] == [
        "retrieve_memory",
        "search_memory",
    ]


def test_the_guidance_teaches_to_read_references() -> None:
    said = guidance(["details"])

    assert "[MemoryRef: key - description]" in said
    assert "retrieve_memory" in said
    assert "copy the references" in said


def test_what_memory_reads_is_not_stored_once_more(ann: AgentMemory) -> None:
    key = stored(ann)
    call = capture_calls(ann, ann.call_tool)

    assert call("retrieve_memory", {"memory_key": key})["content"] == LOG[:4000]
    assert [each.key for each in ann.details.search()] == [key]
