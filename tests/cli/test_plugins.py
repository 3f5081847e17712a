"""Plugins of coding agents call the real program with what their hosts send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Recollect

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code"
SOURCE = Path(__file__).parents[2] / "src"
HOOK = PLUGIN / "hooks" / "recollect_hook.py"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A folder with the program `recollect`, and a store of its own."""
    program = tmp_path / "bin" / "recollect"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m recollect "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "PYTHONPATH": str(SOURCE), "RECOLLECT_URL": f"sqlite:///{tmp_path}/memory.db"}


def fire(environment: dict[str, str], event: str, **fields: Any) -> str:
    sent = {"session_id": "s-1", "cwd": "/", "hook_event_name": event, **fields}
    done = subprocess.run(
        [sys.executable, str(HOOK)],
        input=json.dumps(sent),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stderr == ""
    return done.stdout


def context(output: str) -> str:
    return str(json.loads(output)["hookSpecificOutput"]["additionalContext"])


def test_a_prompt_gets_the_notes_that_fit(environment: dict[str, str]) -> None:
    with Recollect(environment["RECOLLECT_URL"]) as store:
        store.agent().remember("Prefers tabs over spaces")

    assert "Prefers tabs" in context(fire(environment, "UserPromptSubmit", prompt="tabs or spaces?"))


def test_long_output_is_stored(environment: dict[str, str]) -> None:
    output = "".join(f"line {number}: added package\n" for number in range(2_000))
    tool = {"tool_name": "Bash", "tool_input": {"command": "npm install"}}

    said = context(fire(environment, "PostToolUse", **tool, tool_response={"stdout": output}))
    with Recollect(environment["RECOLLECT_URL"]) as store:
        (kept,) = store.agent().list_details()
    assert kept.key in said
    assert kept.chars == len(output)
    assert fire(environment, "PostToolUse", **tool, tool_response={"stdout": "ok"}) == ""


def test_facts_are_stored_at_the_end(environment: dict[str, str], tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "summary", "summary": "x"},
        {"type": "user", "message": {"role": "user", "content": "I am allergic to penicillin."}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "content": "I live in Rome."}]},
        },
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))

    assert fire(environment, "SessionEnd", transcript_path=str(tmp_path / "t.jsonl"), reason="other") == ""
    with Recollect(environment["RECOLLECT_URL"]) as store:
        texts = [each.text for each in store.agent().list()]
    assert any("penicillin" in text for text in texts)
    assert not any("Rome" in text for text in texts)


def test_a_session_goes_on_without_the_program(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(HOOK)],
        input=json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "x"}),
        env=environment | {"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout == ""


def test_the_files_of_the_plugin_are_whole() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]

    assert manifest["version"] == recollect.__version__
    assert set(hooks) == {"UserPromptSubmit", "PostToolUse", "SessionEnd"}
    assert json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["recollect"]["args"][0] == "mcp"
