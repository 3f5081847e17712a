"""A session of the official package over standard input and output."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from wellkept.api.wellkept import AgentMemory
from wellkept.server.mcp.protocol import build_server

LAST_ANSWERS = 60.0
"""Seconds to wait for each further answer after the client has closed its end. Only a hanging call takes longer."""


def serve_session(memory: AgentMemory, sets: Sequence[str], lines: Sequence[bytes], *, is_greeted: bool) -> None:
    """Serve until the client leaves. `lines` have been read already; `is_greeted` if the first has been answered."""
    anyio.run(_serve_stdio, build_server(memory, sets), lines, is_greeted)


async def _serve_stdio(server: Server[Any], lines: Sequence[bytes], is_greeted: bool) -> None:
    async with (
        stdio_server() as (read, write),
        _finish_requests(read, write, [_parse(line) for line in lines], is_greeted) as (requests, answers),
    ):
        await server.run(requests, answers, server.create_initialization_options())


def _parse(line: bytes) -> SessionMessage | Exception:
    """Parse a line as the SDK does."""
    try:
        text = line.decode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as problem:
        return problem


@asynccontextmanager
async def _finish_requests(
    read: Any, write: Any, before: Sequence[SessionMessage | Exception], is_greeted: bool
) -> AsyncIterator[tuple[Any, Any]]:
    """Wrap the two streams so that the first does not end before its requests are answered.

    Otherwise the server would drop running calls when the client closes its end, as `printf … | wellkept mcp` does at
    once, although a memory may have been stored already. The first stream begins with the messages `before`; the
    second leaves out the first answer if the client has it already.
    """
    requests_in, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, answers_out = anyio.create_memory_object_stream[SessionMessage]()
    waiting: set[str | int] = set()
    answered = anyio.Event()

    async def pass_request(received: SessionMessage | Exception) -> None:
        item = _parse_again(received) if isinstance(received, ValidationError) else received
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            waiting.add(item.message.id)
        await requests_in.send(item)

    async def pass_requests() -> None:
        async with requests_in:
            for received in before:
                await pass_request(received)
            async for received in read:
                await pass_request(received)
            is_moving = True
            while waiting and is_moving:
                with anyio.move_on_after(LAST_ANSWERS) as pause:
                    await answered.wait()
                is_moving = not pause.cancelled_caught

    async def pass_answers() -> None:
        nonlocal answered, is_greeted
        async with write:
            async for item in answers_out:
                # The SDK answers `initialize` before it reads on.
                if not is_greeted:
                    await write.send(item)
                is_greeted = False
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
