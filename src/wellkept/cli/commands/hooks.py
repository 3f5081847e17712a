"""`wellkept hook`: what a coding agent sends to its hooks, answered from memory in the format of that agent."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wellkept.cli.run import Run
from wellkept.errors import Invalid
from wellkept.language.text import clean_text
from wellkept.model import Json
from wellkept.prompt.rules_relevance import InjectMode

if TYPE_CHECKING:
    from wellkept.api.wellkept import AgentMemory

MAX_MESSAGES = 200
"""Latest messages of a session that are read for facts."""

MAX_CONTEXT = 9_500
"""Characters of a context; Cursor drops one of more than 10,000."""

NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary")
"""Marks of Claude Code on entries that the user did not write: hints, prompts for helpers and summaries."""

HOST_TEXT = re.compile(
    r"<(system-reminder|command-[a-z]+|local-command-[a-z]+|bash-[a-z]+)>(?:(?!<\1>).)*?</\1>", re.DOTALL
)
"""Text that Claude Code adds to what the user wrote. No match runs over the next one, so the search stays linear."""

QUERY = re.compile(r"</?user_query>")
"""Marks that Cursor puts around what the user typed."""


CODEX_ROLES = {
    "UserMessage": "user",
    "AgentMessage": "assistant",
    "user_message": "user",
    "agent_message": "assistant",
}
"""Speakers of the messages in a transcript of Codex."""


class HookHost(StrEnum):
    """A coding agent whose hooks can call the program."""

    CLAUDE = "claude"
    CODEX = "codex"
    CURSOR = "cursor"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a hook."""

    host: HookHost
    event: Json
    memory: AgentMemory
    is_replacing: bool

    @property
    def session(self) -> str | None:
        given = self.event.get("session_id") or self.event.get("conversation_id")
        return None if given is None else str(given)

    def add_context(self, text: str) -> Json:
        """Return the answer that adds a text to the context of the model."""
        if not text:
            return {}
        if self.host is HookHost.CURSOR:
            return {"additional_context": text[:MAX_CONTEXT]}
        name = self.event["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}

    def replace_output(self, line: str) -> Json:
        """Return the answer that gives the model a line instead of the output of a tool."""
        if self.host is HookHost.CODEX:
            return {"decision": "block", "reason": line}
        response = self.event["tool_response"]
        shown = {**response, "stdout": line, "stderr": ""} if isinstance(response, dict) else line
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": shown}}


def _recall(call: HookCall) -> Json:
    prompt = call.event["prompt"]
    if not isinstance(prompt, str) or not prompt.strip():
        return {}
    return call.add_context(call.memory.prompts.inject(clean_text(prompt)) or "")


def _recall_newest(call: HookCall) -> Json:
    return call.add_context(call.memory.prompts.inject("", mode=InjectMode.RECENT_ONLY) or "")


def _capture(call: HookCall) -> Json:
    output = _read_output(call.event)
    given = call.event.get("tool_input")
    source = str(given.get("command", "") if isinstance(given, dict) else "")[:200]
    captured = call.memory.details.capture_output(output, source=source, session_id=call.session)
    if not captured.is_captured:
        return {}
    # Cursor lets nobody replace the output of a command.
    if call.is_replacing and call.host is not HookHost.CURSOR:
        return call.replace_output(captured.text)
    return call.add_context(captured.text)


def _read_output(event: Json) -> str:
    response = event.get("tool_response", event.get("tool_output", ""))
    if isinstance(response, str):
        try:
            parsed = json.loads(response)
        except (ValueError, RecursionError):
            return response
        # Cursor sends JSON as a string.
        return str(parsed["output"]) if isinstance(parsed, dict) and "output" in parsed else response
    if isinstance(response, dict):
        return "\n".join(filter(None, (str(response.get(name) or "") for name in ("stdout", "stderr", "output"))))
    return json.dumps(response, ensure_ascii=False)


def _learn_session(call: HookCall) -> Json:
    return _learn(call, [*_read_messages(call.event.get("transcript_path"))][-MAX_MESSAGES:])


def _learn_turn(call: HookCall) -> Json:
    """Store the facts of the latest turn, where the end of a session has no hook."""
    said = [*_read_messages(call.event.get("transcript_path"))]
    asked = next((each for each in reversed(said) if each["role"] == "user"), None)
    answer = call.event.get("last_assistant_message")
    return _learn(call, [*([asked] if asked else []), *([{"role": "assistant", "content": answer}] if answer else [])])


def _learn(call: HookCall, messages: list[Json]) -> Json:
    if any(each["role"] == "user" for each in messages):
        call.memory.add(messages, session_id=call.session)
    return {}


def _read_messages(path: str | None) -> Iterator[Json]:
    """Yield what the user and the assistant said, from a transcript with one JSON object a line."""
    # Only a line feed ends an entry: JSON may hold U+2028 and other ends of lines as they are.
    for line in Path(str(path)).read_bytes().split(b"\n") if path else ():
        try:
            entry = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            # The last line may be written just now.
            continue
        role, content = _read_entry(entry) if isinstance(entry, dict) else ("", "")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [each.get("text") for each in parts if isinstance(each, dict) and each.get("type") in ("text", "Text")]
        said = clean_text("\n".join(text for text in texts if isinstance(text, str)))
        said = HOST_TEXT.sub("", QUERY.sub("", said)).strip()
        if role in ("user", "assistant") and said:
            yield {"role": role, "content": said}


def _read_entry(entry: Json) -> tuple[str, Any]:
    """Return the role and the content of one line: of Codex, or of Claude Code and Cursor."""
    payload, message = entry.get("payload"), entry.get("message")
    if entry.get("type") == "event_msg" and isinstance(payload, dict):
        item = payload.get("item")
        # Earlier versions of Codex wrote the text into the event itself.
        said = item if isinstance(item, dict) else payload
        return CODEX_ROLES.get(str(said.get("type")), ""), said.get("content") or said.get("message", "")
    if not isinstance(message, dict) or any(entry.get(mark) for mark in NOT_SAID):
        return "", ""
    return str(entry.get("type") or entry.get("role")), message.get("content", "")


EVENTS: dict[str, Callable[[HookCall], Json]] = {
    "UserPromptSubmit": _recall,
    "PostToolUse": _capture,
    "SessionEnd": _learn_session,
    "Stop": _learn_turn,
    "beforeSubmitPrompt": _recall,
    "postToolUse": _capture,
    "sessionStart": _recall_newest,
    "sessionEnd": _learn_session,
}
"""Functions that answer events, by the names that the hosts give them."""


def hook(run: Run, host: HookHost, replace: bool = False) -> None:
    """Answer a hook of a coding agent: read its event from standard input and print what goes into the context.

    A prompt gets the notes that fit it, a long output a reference; at the end of a session its facts are stored.
    An event without use for memory gets an empty answer.

    host: The coding agent that calls.
    --replace: Give the model the reference instead of a long output, not beside it.

    Example: wellkept hook claude < event.json"""
    try:
        # As long as the output of a tool, so without the limit of a memory.
        event = json.load(sys.stdin.buffer)
        name = str(event["hook_event_name"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Invalid("Standard input is not the event of a hook: a JSON object with `hook_event_name`.") from error
    respond = EVENTS.get(name)
    # Cursor also runs the hooks of Claude Code.
    if respond is None or (host is HookHost.CLAUDE and "cursor_version" in event):
        click.echo("{}")
        return
    try:
        answer = respond(HookCall(host=host, event=event, memory=run.memory, is_replacing=replace))
    except (KeyError, OSError, RecursionError) as error:
        raise Invalid(f"The event {name} cannot be read: {error}.") from error
    click.echo(json.dumps(answer))
