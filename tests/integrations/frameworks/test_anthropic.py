"""The memory tool in whole turns of the anthropic package's tool runners, with a scripted transport."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError

from tests.integrations.examples import read_expected, run_example
from tests.integrations.views import library, opened_view, view
from wellkept import Invalid
from wellkept.integrations.anthropic import AsyncWellkeptMemoryTool, WellkeptMemoryTool, edit_context, make_tools
from wellkept.integrations.plans import is_async

__all__ = ["library", "opened_view", "view"]

pytestmark = pytest.mark.slow

COMMANDS = [
    {"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n"},
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"},
    {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/d/b.md"},
    {"command": "view", "path": "/memories/d/b.md"},
    {"command": "view", "path": "/memories/%2e%2e/etc"},
    {"command": "create", "path": "/memories/pw", "file_text": "The wifi password is Falcon#77"},
    {"command": "delete", "path": "/memories/d"},
    {"command": "view", "path": "/memories", "view_range": None},
]


class ScriptedClaude:
    """Calls tools one after the other, and then says goodbye."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        self.calls, self.requests = calls, list[Any]()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        turn = len(self.requests)
        self.requests.append(json.loads(request.content))
        content: dict[str, Any] = {"type": "text", "text": "Goodbye."}
        if turn < len(self.calls):
            name, given = self.calls[turn]
            content = {"type": "tool_use", "id": f"t-{turn}", "name": name, "input": given}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
        reason = "tool_use" if turn < len(self.calls) else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(200, json={**message, "content": [content], "stop_reason": reason, "usage": usage})

    def results(self) -> list[tuple[bool, str]]:
        found = [each["messages"][-1]["content"][0] for each in self.requests[1:]]
        return [(not each.get("is_error"), each["content"]) for each in found]


def converse(claude: ScriptedClaude, tools: list[Any], *, awaited: bool) -> str:
    asked: Any = {
        "model": "claude",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": tools,
        **edit_context(trigger=9_000),
    }
    transport = httpx2.MockTransport(claude)
    if not awaited:
        client = Anthropic(api_key="none", http_client=httpx2.Client(transport=transport))
        return str(client.beta.messages.tool_runner(**asked).until_done().content[0].text)

    async def run() -> Any:
        client = AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport))
        return await client.beta.messages.tool_runner(**asked).until_done()

    return str(asyncio.run(run()).content[0].text)


@pytest.mark.parametrize("awaited", [False, True])
def test_every_command_works_in_a_turn(view: Any, library: Any, awaited: bool) -> None:
    if is_async(view) and not awaited:
        with pytest.raises(Invalid, match="AsyncWellkeptMemoryTool"):
            WellkeptMemoryTool(view)
        return
    claude = ScriptedClaude(*(("memory", command) for command in COMMANDS))
    tool = AsyncWellkeptMemoryTool(view) if awaited else WellkeptMemoryTool(view)

    assert converse(claude, [tool], awaited=awaited) == "Goodbye."

    results = claude.results()
    assert [is_done for is_done, _ in results] == [True] * 5 + [False] * 2 + [True] * 2
    assert results[4][1].endswith(":\n     1\tzero\n     2\tone\n     3\t2\n     4\t")
    assert "would escape" in results[5][1]
    assert "secret" in results[6][1]
    assert results[8][1].endswith("0B\t/memories")
    assert claude.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert claude.requests[0]["context_management"]["edits"][0]["exclude_tools"] == ["memory"]
    assert not library.items.search(("memories",))


def test_all_memory_is_cleared_and_a_missing_file_is_a_tool_error(view: Any, library: Any) -> None:
    tool = AsyncWellkeptMemoryTool(view, cache_control={"type": "ephemeral"})
    asyncio.run(tool.call(COMMANDS[0]))

    assert asyncio.run(tool.clear_all_memory()) == "All memory cleared"

    with pytest.raises(ToolError, match="does not exist"):
        asyncio.run(tool.call({"command": "view", "path": "/memories/a.md"}))
    assert tool.to_dict()["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"command": "view"}, "`path` is missing"),
        ({"command": "view", "path": 5}, "`path` is missing or no text"),
        ({"command": "view", "path": "/memories/a.md", "view_range": ["a", 2]}, "`view_range` is a list"),
        ({"command": "create", "path": "/memories/b.md"}, "`file_text` is missing"),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": "x", "insert_text": "y"}, "no whole number"),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": 1}, "`insert_text` is missing"),
        ({"command": "rename", "old_path": "/memories/a.md"}, "`new_path` is missing"),
    ],
    ids=str,
)
def test_a_command_without_its_fields_is_a_tool_error(library: Any, fields: Any, says: str) -> None:
    tool = WellkeptMemoryTool(library)
    with pytest.raises(ToolError, match=says):
        tool.call(fields)


def test_a_replacement_without_a_new_text_removes_the_old_one(library: Any) -> None:
    tool = WellkeptMemoryTool(library)
    tool.call(COMMANDS[0])
    tool.call({"command": "str_replace", "path": "/memories/a.md", "old_str": "two\n"})
    assert [item.value["text"] for item in library.items.search(("memories",))] == ["one\n"]


def test_wellkepts_own_tools_run_beside_it(view: Any, library: Any) -> None:
    claude = ScriptedClaude(("memory_store", {"text": "Lives in Oslo"}), ("memory_store", {"colour": "blue"}))

    converse(claude, make_tools(view, ["notes"]), awaited=is_async(view))

    assert [each.text for each in library.list()] == ["Lives in Oslo"]
    assert [json.loads(text)["ok"] for _, text in claude.results()] == [True, False]


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    assert run_example("anthropic", tmp_path) == read_expected("anthropic")
