"""The answer to `initialize` that does not wait for the official package is the one this package gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import InitializeRequestParams, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from wellkept import AgentMemory, Wellkept
from wellkept.server.mcp.client import ClientContext
from wellkept.server.mcp.protocol import build_server
from wellkept.server.mcp.stdio import HANDSHAKE_VERSIONS, greet

SETS = ("notes", "recall")
HOST = {"name": "test", "title": "Test", "version": "1", "websiteUrl": "https://example.org"}


@pytest.fixture(scope="module")
def memory() -> Iterator[AgentMemory]:
    with Wellkept(":memory:") as wellkept:
        yield wellkept.agent()


def initialize(id: object = 1, **params: Any) -> bytes:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": HOST, **params}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).encode() + b"\n"


def ask_package(memory: AgentMemory, line: bytes) -> bytes:
    """The line that the official package writes in answer to this one."""

    async def ask() -> bytes:
        requests_in, requests = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        answers, answers_out = anyio.create_memory_object_stream[SessionMessage](1)
        server = build_server(memory, SETS)
        async with anyio.create_task_group() as group, requests_in, answers_out:
            group.start_soon(server.run, requests, answers, server.create_initialization_options())
            await requests_in.send(SessionMessage(JSONRPCRequest.model_validate_json(line)))
            answer = await answers_out.receive()
            group.cancel_scope.cancel()
        return answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"

    return anyio.run(ask)


def test_the_answer_is_that_of_the_package_in_every_version(memory: AgentMemory) -> None:
    instructions = ClientContext(memory=memory, sets=SETS).instructions
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    for id in (0, 7, "seven \t"):
        for version in HANDSHAKE_VERSIONS:
            line = initialize(id, protocolVersion=version)

            assert greet(line, instructions) == ask_package(memory, line)


@pytest.mark.parametrize(
    "capabilities",
    [
        {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
        {"tools": True, "logging": False, "roots": {"listChanged": False}},
        {"tasks": {"requests": {"sampling": {"createMessage": {}}}}, "experimental": {"x": {"y": [1]}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
    ],
)
def test_hosts_with_capabilities_are_greeted(memory: AgentMemory, capabilities: object) -> None:
    assert greet(initialize(capabilities=capabilities), "") is not None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{",
        b"[]\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"initialize","params":{}}',
        initialize(protocolVersion="2026-07-28"),
        initialize(True),
        initialize("\ud83d"),
        initialize(_meta={}),
        initialize(capabilities={"roots": True}),
        initialize(clientInfo={"name": "test"}),
        initialize(clientInfo=HOST | {"icons": []}),
    ],
)
def test_all_else_is_left_to_the_package(line: bytes) -> None:
    assert greet(line, "") is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["listChanged", "context", "tools", "form", "url", "list", "requests", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["roots", "sampling", "elicitation", "tasks", "extensions", "experimental", "tools"])


@given(capabilities=st.dictionaries(NAMES, VALUES, max_size=3), about=st.dictionaries(st.text(), VALUES, max_size=1))
def test_the_package_accepts_every_host_that_is_greeted(capabilities: dict[str, Any], about: dict[str, Any]) -> None:
    line = initialize(capabilities=capabilities, clientInfo=HOST | about)
    try:
        InitializeRequestParams.model_validate(json.loads(line)["params"], by_name=False)
    except ValidationError:
        assert greet(line, "") is None
