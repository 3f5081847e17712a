"""MCP over standard input and output, for hosts that start this program."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from wellkept.api.wellkept import Wellkept
from wellkept.caller import MCP, acting_as
from wellkept.server.mcp.client import select_sets
from wellkept.server.mcp.protocol import build_server
from wellkept.settings import Settings

LAST_ANSWERS = 60.0
"""Seconds to wait for each further answer after the client has closed its end. Only a hanging call takes longer."""


def run_stdio(settings: Settings, *, sets: Sequence[str] | None = None) -> None:
    """Serve the memory of `settings.agent` on standard input and output until the client leaves.

    Only the protocol is written to standard output; log lines go to standard error.
    Raises: Invalid, StoreError, SchemaMismatch.
    """
    offered = select_sets(settings.tool_sets if sets is None else sets)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with Wellkept(settings=settings) as wellkept, _interruptible(), acting_as(MCP):
        anyio.run(_serve, build_server(wellkept.agent(), offered))


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


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write), _finish_requests(read, write) as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


@asynccontextmanager
async def _finish_requests(read: Any, write: Any) -> AsyncIterator[tuple[Any, Any]]:
    """Wrap the two streams so that the first does not end before its requests are answered.

    Otherwise the server would drop running calls when the client closes its end, as `printf … | wellkept mcp` does at
    once, although a memory may have been stored already.
    """
    requests_in, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, answers_out = anyio.create_memory_object_stream[SessionMessage]()
    waiting: set[str | int] = set()
    answered = anyio.Event()

    async def pass_requests() -> None:
        async with requests_in:
            async for received in read:
                item = _parse_again(received) if isinstance(received, ValidationError) else received
                if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                    waiting.add(item.message.id)
                await requests_in.send(item)
            is_moving = True
            while waiting and is_moving:
                with anyio.move_on_after(LAST_ANSWERS) as pause:
                    await answered.wait()
                is_moving = not pause.cancelled_caught

    async def pass_answers() -> None:
        nonlocal answered
        async with write:
            async for item in answers_out:
                await write.send(item)
                if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
                    waiting.discard(item.message.id)
                    answered.set()
                    answered = anyio.Event()

    async with anyio.create_task_group() as group:
        group.start_soon(pass_requests)
        group.start_soon(pass_answers)
        yield requests, answers


def _parse_again(problem: ValidationError) -> SessionMessage | Exception:
    """Parse a line that the SDK could not: JSON with half a surrogate pair, as in a text cut in the middle of an emoji.

    The tools refuse it with a sentence; without an answer the client would wait forever.
    """
    line = problem.errors(include_url=False)[0]["input"]
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False))
    except (ValueError, TypeError):
        return problem
