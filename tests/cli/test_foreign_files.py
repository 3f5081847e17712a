"""`wellkept data import` of what other programs remembered."""

from __future__ import annotations

import pytest

from tests.cli.program import Program
from tests.providers.test_importers import CLAUDE, LANGGRAPH, REMEMBERED, written, zipped

pytestmark = pytest.mark.proves("X6")


def test_files_are_recognised_or_named(program: Program) -> None:
    zipped(program.folder / "claude.zip", conversations=CLAUDE, memories=REMEMBERED)
    written(program.folder / "store.json", LANGGRAPH)

    tried, done, unknown = (
        program("data", "import", "claude.zip", "--agent", "atlas", "--dry-run", "--json"),
        program("data", "import", "store.json", "--from", "langgraph", "--agent", "atlas", "--json"),
        program("data", "import", "store.json", "--from", "evernote"),
    )

    assert (tried.json["format"], tried.json["added"]) == ("claude", {"turns": 1, "memories": 3})
    assert (done.json["added"], done.json["refused_count"]) == ({"items": 4}, 1)
    assert (unknown.code, unknown.out) == (1, "")
    assert "wellkept, chatgpt, claude, mcp-memory, langgraph, mem0" in unknown.err
    assert program.ok("memory", "items", "search", "--agent", "atlas").count("\n") == 4
    program("data", "import", "claude.zip", "--agent", "remembering", "--remember")
    program.ok("session", "log", "s-1", "--user", "Hi", "--assistant", "Hello", "--remember", "--category", "decision")
    assert "Which tea" in program.ok("memory", "list", "--agent", "remembering", "--kind", "episode", "--state", "all")
    assert program("memory", "list", "--json").json["items"][0]["category"] == "decision"
