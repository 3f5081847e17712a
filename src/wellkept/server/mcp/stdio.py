"""MCP over standard input and output, for hosts that start this program.

The official package builds hundreds of models when it is imported, which takes longer than all the rest. So a plain
`initialize` is answered here, as the package would answer it, and the package is imported for what the host asks next.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import wellkept.server.mcp.session as session
from wellkept import __version__
from wellkept.api.wellkept import Wellkept
from wellkept.caller import MCP, acting_as
from wellkept.server.mcp.client import NAME, TITLE, ClientContext, select_sets
from wellkept.settings import Settings

# Now, not after the first answer; older versions of the package do not have `mcp_types`.
for each in ("mcp", "mcp_types"):
    if find_spec(each) is None:
        raise ModuleNotFoundError(f"No module named {each!r}", name=each)


HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol that begin with `initialize`."""

CAPABILITIES: Mapping[str, Any] = {
    "completions": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}


def run_stdio(settings: Settings, *, sets: Sequence[str] | None = None) -> None:
    """Serve the memory of `settings.agent` on standard input and output until the client leaves.

    Only the protocol is written to standard output; log lines go to standard error.
    Raises: Invalid, StoreError, SchemaMismatch.
    """
    offered = select_sets(settings.tool_sets if sets is None else sets)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with (
        Wellkept(settings=settings) as wellkept,
        _interruptible(),
        acting_as(MCP),
        # Without a buffer, so that the package finds all that follows.
        open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as requests,
    ):
        memory = wellkept.agent()
        lines = [requests.readline()]
        greeting = greet(lines[0], ClientContext(memory=memory, sets=offered).instructions)
        if greeting is not None:
            sys.stdout.buffer.write(greeting)
            sys.stdout.buffer.flush()
            lines.append(requests.readline())
        if lines[-1]:
            session.serve_session(memory, offered, lines, is_greeted=greeting is not None)


def greet(line: bytes, instructions: str) -> bytes | None:
    """Return the answer to a plain `initialize`; None if it is something else or the package may have objections."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if not _is_plain_initialize(message):
        return None
    result = {
        "capabilities": CAPABILITIES,
        "protocolVersion": message["params"]["protocolVersion"],
        "serverInfo": {"name": NAME, "title": TITLE, "version": __version__},
        "instructions": instructions,
    }
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _is_plain_initialize(message: Any) -> bool:
    match message:
        case {
            "jsonrpc": "2.0",
            "id": int() | str() as id,
            "method": "initialize",
            "params": {
                "protocolVersion": str() as version,
                "capabilities": dict() as capabilities,
                "clientInfo": {"name": str(), "version": str(), **about},
                **more,
            },
            **rest,
        }:
            return (
                version in HANDSHAKE_VERSIONS
                and not more
                and not rest
                and (id.isascii() if isinstance(id, str) else 0 <= id < 2**53 and id is not True and id is not False)
                and all(isinstance(each, str) for each in about.values())
                and all(_is_plain_capability(name, value) for name, value in capabilities.items())
            )
    return False


def _is_plain_capability(name: str, value: Any) -> bool:
    match name, value:
        case "roots", {"listChanged": bool(), **more}:
            return not more
        case "extensions" | "experimental", dict():
            return all(isinstance(each, dict) for each in value.values())
        case (("roots" | "sampling" | "elicitation" | "tasks"), _):
            return _is_nested(value)
    # A capability that the protocol does not know may have any value.
    return name not in ("extensions", "experimental")


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_nested, value.values()))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the program at once: a thread that waits for the next line would block a graceful exit.

    Nothing is lost, since everything that was answered is on disk.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
