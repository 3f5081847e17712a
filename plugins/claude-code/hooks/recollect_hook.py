"""Hook of Claude Code: reads an event from standard input and calls the `recollect` program.

Memory is a help, never an obstacle: whatever fails here, the session goes on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_MESSAGES = 200
"""Latest messages of a session that are read for facts."""


def recollect(*words: str, text: str) -> str:
    """Run the program with a text on its standard input; return what it printed."""
    ran = subprocess.run(["recollect", *words], input=text, capture_output=True, text=True, encoding="utf-8")
    return ran.stdout.strip() if ran.returncode == 0 else ""


def add_context(event: dict[str, Any], text: str) -> None:
    """Print a text that Claude Code adds to the context."""
    if text:
        output = {"hookEventName": event["hook_event_name"], "additionalContext": text}
        print(json.dumps({"hookSpecificOutput": output}))


def on_prompt(event: dict[str, Any]) -> None:
    """Add the notes that fit the prompt."""
    add_context(event, recollect("inject", "-", text=event["prompt"]))


def on_tool(event: dict[str, Any]) -> None:
    """Store a long output of a command, and name the reference by which it can be read in parts."""
    response = event["tool_response"]
    output = response.get("stdout", "") if isinstance(response, dict) else str(response)
    source = str(event.get("tool_input", {}).get("command", ""))[:200]
    kept = recollect("capture", "--quiet", "--source", source, "--session", event["session_id"], text=output)
    # A short output comes back as it is.
    if kept != output.strip():
        add_context(event, kept)


def on_end(event: dict[str, Any]) -> None:
    """Store the lasting facts of the session."""
    messages = list(read_messages(Path(event["transcript_path"])))[-MAX_MESSAGES:]
    if messages:
        recollect("add", "-", "--session", event["session_id"], text=json.dumps(messages))


def read_messages(path: Path) -> Iterator[dict[str, str]]:
    """Yield what the user and the assistant said, from a transcript with one JSON object a line."""
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line) if line.strip() else {}
        message = entry.get("message")
        if entry.get("type") not in ("user", "assistant") or entry.get("isMeta") or not isinstance(message, dict):
            continue
        content = message.get("content", "")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        said = "\n".join(str(each["text"]) for each in parts if isinstance(each, dict) and each.get("type") == "text")
        if said.strip():
            yield {"role": entry["type"], "content": said}


EVENTS = {"UserPromptSubmit": on_prompt, "PostToolUse": on_tool, "SessionEnd": on_end}


def main() -> None:
    try:
        event = json.load(sys.stdin)
        EVENTS[event["hook_event_name"]](event)
    except (OSError, KeyError, TypeError, ValueError) as error:
        print(f"recollect: {type(error).__name__}", file=sys.stderr)


if __name__ == "__main__":
    main()
