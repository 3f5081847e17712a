"""Another server's tools, called by the SDK's own client: long answers reach the agent as references."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from wellkept import AsyncWellkept, Settings, Wellkept, captured
from wellkept.details.capturing import capture_calls
from wellkept.details.rules_keys import find_references
from wellkept.server.mcp.protocol import build_server

LOG = "".join(f"2026-01-31T12:00:{n % 60:02}Z INFO step {n} done\n" for n in range(500))


def text_of(answer: Any) -> str:
    return str(answer.content[0].text)


def others_tools(memory: Any) -> MCPServer:
    """A server that knows nothing of memory, but for one tool that is decorated."""
    server = MCPServer("others")

    @server.tool()
    def read_log(lines: int) -> str:
        """Read the log."""
        return "\n".join(LOG.splitlines()[:lines])

    @server.tool()
    @captured(memory)
    def fetch(lines: int) -> str:
        """Fetch the log."""
        return "\n".join(LOG.splitlines()[:lines])

    return server


@pytest.mark.proves("D1")
def test_a_client_that_is_wrapped_gets_references_which_memorys_own_server_reads() -> None:
    async def run(wellkept: Wellkept) -> None:
        atlas = wellkept.agent("atlas")
        async with Client(others_tools(atlas)) as others, Client(build_server(atlas)) as memory:
            call = capture_calls(atlas, others.call_tool)

            short = await call("read_log", {"lines": 2})
            assert text_of(short) == "\n".join(LOG.splitlines()[:2])
            long = await call("read_log", {"lines": 500})
            (found,) = find_references(text_of(long))
            assert (long.structured_content, long.is_error) == (None, False)
            read = await memory.call_tool("read_detail", {"key": found.text, "tail": 1})
            assert read.structured_content is not None
            assert read.structured_content["content"] == LOG.splitlines()[-1]

    with Wellkept(":memory:", settings=Settings()) as wellkept:
        anyio.run(run, wellkept)


def test_a_decorated_tool_keeps_its_schema_on_a_server() -> None:
    async def run(wellkept: Wellkept) -> None:
        async with Client(others_tools(wellkept.agent("atlas"))) as client:
            plain, decorated = (await client.list_tools()).tools
            assert decorated.input_schema["properties"] == plain.input_schema["properties"]
            assert (decorated.name, decorated.description) == ("fetch", "Fetch the log.")
            answer = await client.call_tool("fetch", {"lines": 500})
            assert find_references(answer.content[0].text)  # type: ignore[union-attr]

    with Wellkept(":memory:", settings=Settings()) as wellkept:
        anyio.run(run, wellkept)


def test_an_async_memory_wraps_a_client_too() -> None:
    async def run() -> None:
        async with AsyncWellkept(":memory:", settings=Settings()) as wellkept:
            atlas = wellkept.agent("atlas")
            with Wellkept(":memory:", settings=Settings()) as other:
                async with Client(others_tools(other.agent("x"))) as client:
                    long = await capture_calls(atlas, client.call_tool)("read_log", {"lines": 500})
            (found,) = find_references(text_of(long))
            assert (await atlas.details.get(found.key)).metadata["source"] == "read_log"

    anyio.run(run)
