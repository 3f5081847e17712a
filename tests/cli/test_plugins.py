"""Plugins of coding agents call the real program with what their hosts send."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.cli.program import Program
from tests.waiting import eventually
from wellkept import Wellkept

PLUGINS = Path(__file__).parents[2] / "plugins"
HOSTS = {"claude": "claude-code/hooks/hooks.json", "codex": "codex/hooks.json", "cursor": "cursor/hooks.json"}
EVENTS = {
    "claude": {"UserPromptSubmit", "PostToolUse", "SessionEnd"},
    "codex": {"UserPromptSubmit", "PostToolUse", "Stop"},
    "cursor": {"sessionStart", "beforeSubmitPrompt", "postToolUse", "sessionEnd"},
}
PROMPT = {"claude": "UserPromptSubmit", "codex": "UserPromptSubmit", "cursor": "beforeSubmitPrompt"}
TOOL = {"claude": "PostToolUse", "codex": "PostToolUse", "cursor": "postToolUse"}
OUTPUT = "".join(f"line {number}: added package\n" for number in range(2_000))


def read_commands(host: str) -> dict[str, str]:
    """Return the command of each event in the plugin of a host."""
    hooks = json.loads((PLUGINS / HOSTS[host]).read_text())["hooks"]
    return {name: entry.get("command") or entry["hooks"][0]["command"] for name, (entry,) in hooks.items()}


def fire(program: Program, host: str, event: str, *options: str, **fields: Any) -> Any:
    sent = {"session_id": "s-1", "cwd": "/", "hook_event_name": event, **fields}
    done = program("hook", host, *options, given=json.dumps(sent))
    assert (done.code, done.err) == (0, "")
    return done.json


def open_store(program: Program) -> Wellkept:
    return Wellkept(f"sqlite:///{program.folder}/notes.db")


def context(host: str, answer: Any) -> str:
    if host == "cursor":
        return str(answer["additional_context"])
    return str(answer["hookSpecificOutput"]["additionalContext"])


def respond(host: str, output: str) -> dict[str, Any]:
    """Return the fields by which a host reports the output of a command."""
    given = {"tool_name": "Shell" if host == "cursor" else "Bash", "tool_input": {"command": "npm install"}}
    responses: dict[str, dict[str, Any]] = {
        "claude": {"tool_response": {"stdout": output, "stderr": "", "interrupted": False}},
        "codex": {"tool_response": output, "turn_id": "t-1", "tool_use_id": "c-1"},
        "cursor": {"tool_output": json.dumps({"output": output, "exitCode": 0}), "cursor_version": "2026.09.18"},
    }
    return given | responses[host]


@pytest.mark.parametrize("host", HOSTS)
def test_a_prompt_gets_the_notes_that_fit(program: Program, host: str) -> None:
    with open_store(program) as store:
        store.agent().remember("Prefers tabs over spaces")

    assert "Prefers tabs" in context(host, fire(program, host, PROMPT[host], prompt="tabs or spaces?"))


@pytest.mark.parametrize("host", HOSTS)
def test_long_output_is_stored(program: Program, host: str) -> None:
    said = context(host, fire(program, host, TOOL[host], **respond(host, OUTPUT)))

    with open_store(program) as store:
        (kept,) = store.agent().details.list()
    assert kept.key in said
    assert kept.chars == len(OUTPUT)
    assert fire(program, host, TOOL[host], **respond(host, "ok")) == {}


def test_a_reference_can_replace_the_output(program: Program) -> None:
    answers = {host: fire(program, host, TOOL[host], "--replace", **respond(host, OUTPUT)) for host in HOSTS}
    assert "MemoryRef" in answers["claude"]["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
    assert answers["claude"]["hookSpecificOutput"]["updatedToolOutput"]["interrupted"] is False
    assert answers["codex"].keys() == {"decision", "reason"}
    assert "MemoryRef" in answers["codex"]["reason"]
    assert "MemoryRef" in answers["cursor"]["additional_context"]


def complete_item(kind: str, part: dict[str, str]) -> dict[str, Any]:
    """Return a line of a transcript of Codex 0.169."""
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": kind, "content": [part]}}}


TRANSCRIPTS: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "summary", "summary": "x"},
        {"type": "user", "message": {"role": "user", "content": "I am allergic to penicillin."}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "content": "I live in Rome."}]},
        },
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s-1"}},
        {
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "I live in Rome."}],
            },
        },
        complete_item("UserMessage", {"type": "text", "text": "I am allergic to penicillin."}),
        complete_item("AgentMessage", {"type": "Text", "text": "Noted."}),
    ],
    "cursor": [
        {
            "role": "user",
            "message": {
                "content": [{"type": "text", "text": "<user_query>\nI am allergic to penicillin.\n</user_query>"}]
            },
        },
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Noted."}]}},
    ],
}


@pytest.mark.parametrize("host", HOSTS)
def test_facts_are_stored_at_the_end(program: Program, host: str, tmp_path: Path) -> None:
    # The last line is half written.
    (tmp_path / "t.jsonl").write_text("\n".join([*map(json.dumps, TRANSCRIPTS[host]), '{"type": "us']))
    (event,) = EVENTS[host] & {"SessionEnd", "Stop", "sessionEnd"}
    also = {"last_assistant_message": "Noted."} if host == "codex" else {}

    assert fire(program, host, event, transcript_path=str(tmp_path / "t.jsonl"), **also) == {}
    with open_store(program) as store:
        texts = [each.text for each in store.agent().list()]
    assert any("penicillin" in text for text in texts)
    assert not any("Rome" in text or "<" in text for text in texts)
    assert fire(program, host, event, transcript_path=None) == {}


def test_transcripts_of_earlier_versions_of_codex_are_read(program: Program, tmp_path: Path) -> None:
    said = {"type": "event_msg", "payload": {"type": "user_message", "message": "I am allergic to penicillin."}}
    (tmp_path / "t.jsonl").write_text(json.dumps(said))

    assert fire(program, "codex", "Stop", transcript_path=str(tmp_path / "t.jsonl")) == {}
    with open_store(program) as store:
        assert [each.text for each in store.agent().list()] == ["I am allergic to penicillin."]


def test_a_session_of_cursor_begins_with_the_newest_notes(program: Program) -> None:
    with open_store(program) as store:
        store.agent().remember_many([f"Fact {number}: {'long ' * 90}" for number in range(60)])

    said = context("cursor", fire(program, "cursor", "sessionStart", composer_mode="agent"))
    assert "Fact 59" in said
    assert len(said) < 10_000


def test_hooks_of_claude_code_do_nothing_in_cursor(program: Program) -> None:
    with open_store(program) as store:
        store.agent().remember("Prefers tabs over spaces")

    assert fire(program, "claude", "UserPromptSubmit", prompt="tabs or spaces?", cursor_version="2026.09.18") == {}


@pytest.mark.parametrize("program_text", ["exit 2", "", None])
@pytest.mark.parametrize("host", HOSTS)
def test_a_session_goes_on_without_the_program(host: str, program_text: str | None, tmp_path: Path) -> None:
    if program_text is not None:
        (tmp_path / "wellkept").write_text(f"#!/bin/sh\n{program_text}\n")
        (tmp_path / "wellkept").chmod(0o755)
    for command in read_commands(host).values():
        done = subprocess.run(["/bin/sh", "-c", command], env={"PATH": str(tmp_path)}, capture_output=True, timeout=100)
        assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("sent", ["", "[]", "{}", '{"hook_event_name": "UserPromptSubmit"}', "\xff"])
def test_something_else_than_an_event_is_refused(program: Program, sent: str) -> None:
    done = program("hook", "claude", given=sent.encode("latin-1"))
    assert done.code == 1
    assert "event" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("prompt", [None, 5, "", " \n"])
def test_a_prompt_without_a_text_gets_nothing(program: Program, prompt: Any) -> None:
    with open_store(program) as store:
        store.agent().remember("Prefers tabs over spaces")

    assert fire(program, "claude", "UserPromptSubmit", prompt=prompt) == {}


def test_a_prompt_with_characters_that_no_store_takes_is_answered(program: Program) -> None:
    with open_store(program) as store:
        store.agent().remember("Prefers tabs over spaces")

    prompt = "tabs \ud800 or \x00 spaces?" + " and a pasted log" * 20_000
    assert "Prefers tabs" in context("claude", fire(program, "claude", "UserPromptSubmit", prompt=prompt))


def test_an_event_nested_too_deeply_is_refused(program: Program) -> None:
    done = program("hook", "claude", given='{"prompt": ' + "[" * 100_000)
    assert (done.code, "Traceback" in done.err) == (1, False)


def test_odd_entries_of_a_transcript_hide_no_fact_and_are_none(program: Program, tmp_path: Path) -> None:
    """Only what the user wrote is learned: no prompts for helpers, summaries or texts that the host added."""
    written: list[Any] = [
        {"message": {"content": [{"type": "text"}, {"type": "text", "text": None}, 5]}},
        {"message": 5},
        {"message": {"content": "I prefer\u2028dark mode in my editor.\x00"}},
        {"isSidechain": True, "message": {"content": "I always use Haskell for web servers."}},
        {"isCompactSummary": True, "message": {"content": "My favourite colour is mauve."}},
        {"message": {"content": "<system-reminder>I prefer reminders.</system-reminder>I live in Bergen."}},
        {"message": {"content": "My OpenAI key is sk-proj-" + "Ab3dEf6hIj9lMn2p" * 3}},
        {"message": {"content": "Do I prefer tabs?"}},
    ]
    lines = [json.dumps({"type": "user", **each}, ensure_ascii=False).encode() for each in written]
    transcript = tmp_path / "session.jsonl"
    transcript.write_bytes(b"\n".join([b"\xff\xfe", b"7", b"[" * 100_000, *lines]))

    assert fire(program, "claude", "SessionEnd", transcript_path=str(transcript)) == {}
    with open_store(program) as store:
        learned = {memory.text for memory in store.agent().list()}
    assert learned == {"I prefer\u2028dark mode in my editor.", "I live in Bergen."}


def test_an_event_without_use_for_memory_gets_an_empty_answer(program: Program) -> None:
    assert fire(program, "codex", "PreCompact") == {}


@pytest.mark.parametrize("host", HOSTS)
def test_each_event_calls_the_same_command(host: str) -> None:
    commands = read_commands(host)
    assert set(commands) == EVENTS[host]
    ends = {commands.pop("SessionEnd")} if host == "claude" else set()
    assert set(commands.values()) == {f"wellkept hook {host} || exit 0"}
    assert all(f"| nohup wellkept hook {host} >" in command for command in ends)


def test_the_end_of_a_session_of_claude_code_does_not_wait(tmp_path: Path) -> None:
    """Claude Code stops a hook of that event after one and a half seconds; a model may take longer."""
    stub = tmp_path / "wellkept"
    stub.write_text("#!/bin/sh\nwhile [ ! -e may-end ]; do sleep 0.05; done\ncat > new && mv new got\n")
    stub.chmod(0o755)
    sent = json.dumps({"hook_event_name": "SessionEnd", "transcript_path": "a %s 'b' \\n c"})
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    command = ["sh", "-c", read_commands("claude")["SessionEnd"]]
    subprocess.run(command, input=sent, text=True, env=environment, cwd=tmp_path, check=True, timeout=60)
    assert not (tmp_path / "got").exists()
    (tmp_path / "may-end").touch()
    eventually((tmp_path / "got").exists)
    assert (tmp_path / "got").read_text() == sent


def test_the_files_of_plugins_are_whole() -> None:
    manifest = json.loads((PLUGINS / "claude-code" / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["version"] == wellkept.__version__
    servers = json.loads((PLUGINS / "claude-code" / ".mcp.json").read_text())["mcpServers"]
    assert servers["wellkept"]["args"][0] == "mcp"
    assert json.loads((PLUGINS / "cursor" / "hooks.json").read_text())["version"] == 1
    # Cursor removes what follows two slashes, also inside of texts.
    assert "//" not in (PLUGINS / "cursor" / "hooks.json").read_text()
