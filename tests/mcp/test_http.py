"""MCP at `/mcp` of a real server on a real socket, asked by the SDK's own client and by plain HTTP."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INVALID_PARAMS

from tests.mcp.test_resources_and_prompts import ask_for_resources_and_prompts
from tests.mcp.test_tools import answer, both_eras
from tests.server.live import NO_CERTIFICATES, PATIENCE, ServerProcess, client_of, serving, wait_until
from wellkept import Invalid, Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import Json, KeyScope
from wellkept.server.app import create_app
from wellkept.server.http.limits import MAX_BODY_BYTES
from wellkept.server.mcp import mounting
from wellkept.server.mcp.client import READ_ONLY
from wellkept.server.mcp.http import AGENT_HEADER
from wellkept.tools import catalog
from wellkept.tools.guidance import guidance

Ask = Callable[[Client], Awaitable[None]]
JSON = "application/json"
ALL_SETS = tuple(catalog.SETS)
SETTINGS = {"tool_sets": ALL_SETS}  # of the store `opened`
STREAM_FIRST = "text/event-stream, application/json;q=0.9"
HELLO: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@dataclass(frozen=True)
class Door:
    """A server with keys."""

    address: str
    keys: dict[tuple[str, KeyScope], str]

    def client(self, tenant: str, scope: KeyScope = KeyScope.WRITE) -> Any:
        return client_of(self.address, self.keys[tenant, scope])


@pytest.fixture(scope="module")
def door(opened: Wellkept) -> Iterator[Door]:
    tenants = ("acme", "other", "default")
    keys = {(each, scope): opened.tenant(each).keys.create(scope).key for each in tenants for scope in KeyScope}
    with serving(opened, no_auth=False) as address:
        yield Door(address, keys)


@asynccontextmanager
async def connected(
    address: str, key: str = "", *, query: str = "", mode: str = "legacy", headers: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    """The SDK's client."""
    sent = {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES) as http,
        Client(streamable_http_client(f"{address}/mcp{query}", http_client=http), mode=mode) as client,
    ):
        yield client


def with_client(address: str, ask: Ask, key: str = "", **options: Any) -> None:
    async def run() -> None:
        async with connected(address, key, **options) as client:
            await ask(client)

    anyio.run(run)


def posted(client: httpx2.Client, method: str, params: Json | None = None, **options: Any) -> httpx2.Response:
    """One request, the way a program without an SDK sends it."""
    headers = {"Accept": JSON, "Content-Type": JSON, **options.pop("headers", {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return client.post(f"/mcp{options.pop('query', '')}", json=body, headers=headers, **options)


def called(client: httpx2.Client, tool: str, **arguments: Any) -> Json:
    result = posted(client, "tools/call", {"name": tool, "arguments": arguments}).json()["result"]
    structured: Json = result["structuredContent"]
    return structured


@both_eras
def test_every_tool_is_listed_and_answers(door: Door, opened: Wellkept, mode: str) -> None:
    """Over both forms of the protocol: with the handshake, and without."""
    opened.tenant("acme").knowledge.ingest("Refunds are paid within 14 days.", title="Refunds", category="policy")

    async def ask(client: Client) -> None:
        assert client.instructions == guidance(catalog.SETS)
        assert [tool.name for tool in (await client.list_tools()).tools] == list(catalog.TOOLS)
        stored = answer(await client.call_tool("store_memory", {"content": "line\n" * 9, "description": "A list"}))
        note = answer(await client.call_tool("memory_store", {"text": "Prefers tabs — größer 🎉"}))
        for name, given, expected in (
            ("memory_search", {"query": "tabs"}, "größer 🎉"),
            ("save_to_journal", {"content": "We met on Tuesday"}, "journal"),
            ("save_to_core", {"content": "I am careful with money"}, "core"),
            ("search_my_memories", {"query": "tabs?"}, "Prefers tabs"),
            ("search_knowledge", {"query": "refunds"}, "14 days"),
            ("retrieve_memory", {"memory_key": stored["memory_key"]}, "line"),
            ("search_memory", {"query": "list"}, stored["memory_key"]),
            ("memory_delete", {"id": note["id"]}, "ok"),
        ):
            found = answer(await client.call_tool(name, given))
            assert expected in json.dumps(found, ensure_ascii=False), name

    with_client(door.address, ask, door.keys["acme", KeyScope.WRITE], query=f"?agent=all-{mode}", mode=mode)


@both_eras
def test_resources_and_prompts_are_offered(door: Door, opened: Wellkept, mode: str) -> None:
    tenant = opened.tenant(f"reading-{mode}")
    memory = tenant.agent("atlas")
    memory.remember("I am careful with money", kind="core")
    memory.remember("The deploy of the shop failed", kind="episode", category="error")
    key = memory.details.store("one\ntwo\n", description="A list").key

    async def ask(client: Client) -> None:
        await ask_for_resources_and_prompts(client, key)

    with_client(door.address, ask, tenant.keys.create("read").key, query="?agent=atlas", mode=mode)


@both_eras
def test_the_address_names_the_agent_and_the_sets(door: Door, opened: Wellkept, mode: str) -> None:
    async def ask(client: Client, agent: str) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            tool.name for tool in catalog.select_tools(["notes", "recall"])
        }
        assert client.instructions == guidance(["notes", "recall"])
        await client.call_tool("memory_store", {"text": f"I am {agent}"})
        with pytest.raises(MCPError, match="Unknown tool") as refusal:
            await client.call_tool("save_to_core", {"content": "I am in charge"})
        assert refusal.value.code == INVALID_PARAMS

    key, query, names = door.keys["acme", KeyScope.WRITE], "?sets=notes,recall", [f"{mode}-{each}" for each in "abc"]
    first, second, third = names
    with_client(door.address, partial(ask, agent=first), key, query=f"{query}&agent={first}", mode=mode)
    with_client(door.address, partial(ask, agent=second), key, query=query, headers={AGENT_HEADER: second}, mode=mode)
    both = {"query": f"{query}&agent={third}", "headers": {AGENT_HEADER: "somebody"}}
    with_client(door.address, partial(ask, agent=third), key, mode=mode, **both)
    acme = opened.tenant("acme")
    assert [[note.text for note in acme.agent(name).list()] for name in names] == [[f"I am {name}"] for name in names]
    assert acme.agent("somebody").list() == []


def test_without_a_word_it_is_the_agent_of_the_settings(door: Door, opened: Wellkept) -> None:
    with door.client("acme") as client:
        id = called(client, "memory_store", text="For the default agent")["id"]

    assert opened.tenant("acme").agent("default").get(id).text == "For the default agent"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?agent=not%20an%20id", "An agent id is"),
        ("?agent=a/b", "An agent id is"),
        ("?sets=nots", "There is no tool set 'nots'"),
        ("?sets=notes,NOTES", "There is no tool set 'NOTES'"),
        ("?sets=", "No tools are selected"),
        ("?sets=,", "No tools are selected"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(door: Door, query: str, sentence: str) -> None:
    with door.client("acme") as client:
        refusal = posted(client, "tools/list", query=query)

    assert (refusal.status_code, refusal.json()["code"]) == (400, "invalid")
    assert sentence in refusal.json()["error"]


def test_white_space_around_the_values_of_headers_is_ignored(door: Door) -> None:
    name, port = door.address.removeprefix("http://").split(":")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    lines = (
        "POST /mcp HTTP/1.1",
        f"Host: {name}:{port}",
        f"Authorization:  Bearer {door.keys['acme', KeyScope.READ]} \t",
        f"Accept: {JSON} ",
        f"Content-Type: {JSON} ",
        "Mcp-Method: tools/list \t ",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    with socket.create_connection((name, int(port))) as connection:
        connection.sendall("\r\n".join([*lines, "", body]).encode())
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answered.startswith(b"HTTP/1.1 200"), answered


def test_without_the_extra_the_route_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounting, "find_spec", lambda name: None)
    with (
        Wellkept(":memory:", settings=Settings(embedder="off")) as store,
        serving(store) as address,
        client_of(address) as client,
    ):
        refusal = posted(client, "tools/list")
        assert client.get("/health").status_code == 200
    assert (refusal.status_code, refusal.json()["ok"]) == (501, False)
    assert "pip install 'wellkept[mcp]'" in refusal.json()["error"]


def test_settings_that_offer_what_does_not_exist_are_refused_at_the_start() -> None:
    settings = Settings(tool_sets=("notes", "nots"), embedder="off")
    with Wellkept(":memory:", settings=settings) as store, pytest.raises(Invalid, match="no tool set 'nots'"):
        create_app(store)


@both_eras
def test_a_key_that_may_only_read_is_offered_what_reads(door: Door, opened: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        assert offered == [tool.name for tool in catalog.TOOLS.values() if tool.is_read_only]
        assert (client.instructions or "").endswith(READ_ONLY)
        assert answer(await client.call_tool("memory_search", {}))["count"] == 0
        for tool in catalog.TOOLS.values():
            if not tool.is_read_only:
                refusal = answer(await client.call_tool(tool.name, {"text": "mine now"}))
                assert refusal["ok"] is False
                assert "may only read" in refusal["error"]

    query = f"?agent=reader-{mode}"
    with_client(door.address, ask, door.keys["acme", KeyScope.READ], query=query, mode=mode)
    assert opened.tenant("acme").agent(f"reader-{mode}").list(state="all") == []


@both_eras
@pytest.mark.parametrize("key", ["", "hunter2", "rk_acme_wrong"])
def test_a_wrong_key_opens_nothing(door: Door, key: str, mode: str) -> None:
    async def ask(client: Client) -> None:
        raise AssertionError(await client.list_tools())

    with pytest.raises(BaseExceptionGroup) as refusal:
        with_client(door.address, ask, key, mode=mode)
    assert not refusal.group_contains(AssertionError)
    with client_of(door.address, key) as client:
        refused = posted(client, "tools/list")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.proves("E12")
def test_another_tenants_key_finds_nothing(door: Door, opened: Wellkept) -> None:
    mine = opened.tenant("acme").agent("atlas")
    note, core = mine.remember("The vault is behind the painting"), mine.remember("I guard the vault", kind="core")
    detail = mine.details.store("The vault holds gold", description="vault").key

    async def ask(client: Client) -> None:
        for name, given in (
            ("memory_search", {}),
            ("search_my_memories", {"query": "vault"}),
            ("search_memory", {"query": "vault"}),
            ("search_knowledge", {"query": "vault"}),
        ):
            assert answer(await client.call_tool(name, given))["count"] == 0
        for name, theirs, nobodys in (
            ("memory_delete", {"id": note.id}, {"id": "m-999"}),
            ("memory_store", {"text": "new", "supersedes": core.id}, {"text": "new", "supersedes": "m-999"}),
            ("retrieve_memory", {"memory_key": detail}, {"memory_key": "no-such-key"}),
        ):
            refusals = [answer(await client.call_tool(name, given)) for given in (theirs, nobodys)]
            assert json.dumps(refusals[0]).replace(note.id, "m-999").replace(core.id, "m-999") == json.dumps(
                refusals[1]
            )
        private = await client.read_resource("wellkept://agent/atlas/private-memory")
        assert [getattr(each, "text", None) for each in private.contents] == [""]
        with pytest.raises(MCPError, match="no") as missing:
            await client.read_resource(f"wellkept://agent/atlas/details/{detail}")
        assert "gold" not in str(missing.value)

    with_client(door.address, ask, opened.tenant("stranger").keys.create("admin").key, query="?agent=atlas")
    assert mine.get(note.id) == note


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8077"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_a_page_from_elsewhere_is_refused(door: Door, headers: dict[str, str]) -> None:
    """DNS rebinding shows in the Host, any other page in the Origin."""
    with door.client("acme") as client:
        refusal = posted(client, "tools/list", headers=headers)

    assert (refusal.status_code, refusal.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_session_to_listen_to_or_to_end(door: Door, method: str) -> None:
    with door.client("acme", KeyScope.ADMIN) as client:
        refusal = client.request(method, "/mcp", headers={"Accept": "text/event-stream"})

    assert (refusal.status_code, refusal.headers["Allow"]) == (405, "POST")


def test_an_answer_is_json(door: Door) -> None:
    with door.client("acme") as client:
        plain = posted(client, "initialize", HELLO)
        either = posted(client, "initialize", HELLO, headers={"Accept": STREAM_FIRST})
        neither = posted(client, "initialize", HELLO, headers={"Accept": "text/html"})

    assert plain.headers["Content-Type"] == either.headers["Content-Type"] == JSON
    assert plain.json()["result"]["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in plain.headers, "any server of a group may answer the next one"
    assert neither.status_code == 406


def test_what_is_no_message_is_refused_and_never_an_error_of_ours(door: Door) -> None:
    modern = {"MCP-Protocol-Version": "2026-07-28"}
    call = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "kept"}})
    half = call.replace("kept", "\\ud83d").replace("7", '"\\ud83d"')
    deep = "[" * 100_000
    with door.client("acme") as client:
        for content in (
            b"",
            b"\xff\xfe",
            b"null",
            b"[]",
            b"7",
            b"{}",
            half.encode(),
            deep.encode(),
            b'{"id":' + b"9" * 9_000,
        ):
            for headers in ({}, modern):
                sent = {"Content-Type": JSON, "Accept": JSON, **headers}
                refusal = client.post("/mcp", content=content, headers=sent)
                assert 400 <= refusal.status_code < 500, (content[:40], headers, refusal.text)
        wrong = posted(client, "tools/list", headers={"Content-Type": "text/plain"})
        assert wrong.status_code in (400, 415)


def test_a_body_that_is_too_long_is_refused_as_everywhere(door: Door) -> None:
    with door.client("acme") as client:
        declared = client.post("/mcp", content=b"x" * (MAX_BODY_BYTES + 1), headers={"Accept": JSON})
        streamed = client.post("/mcp", content=iter([b"x" * 65536] * (MAX_BODY_BYTES // 65536 + 1)))

    for refusal in (declared, streamed):
        assert (refusal.status_code, refusal.json()["code"]) == (413, "too_large")


def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_problem(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    where = urlsplit(door.address)
    head = f"POST /mcp HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {door.keys['acme', KeyScope.READ]}\r\n"
    for _ in range(5):
        with socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE) as line:
            line.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    with door.client("acme") as client:
        assert posted(client, "ping").status_code == 200

        def is_over() -> bool:
            with door.client("default", KeyScope.OPERATOR) as operator:
                return "wellkept_requests_under_way 1.0" in operator.get("/metrics").text  # that very request

        wait_until(is_over)
    assert caplog.text == ""


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_call_nobody_waits_for_any_more_is_done_all_the_same(
    door: Door, opened: Wellkept, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    is_begun, may_go_on, remember = threading.Event(), threading.Event(), AgentMemory.remember

    def slow(self: AgentMemory, *given: Any, **more: Any) -> Any:
        is_begun.set()
        assert may_go_on.wait(PATIENCE)
        return remember(self, *given, **more)

    monkeypatch.setattr(AgentMemory, "remember", slow)

    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "memory_store", {"text": "stored anyway"})
            await anyio.to_thread.run_sync(is_begun.wait)
            group.cancel_scope.cancel()
        assert answer(await client.call_tool("memory_search", {}))["count"] == 0, "others are not held up"

    with_client(door.address, ask, door.keys["acme", KeyScope.WRITE], query=f"?agent=gone-{mode}", mode=mode)
    # Only after the client is closed: an answer that arrives while it closes is an error inside the mcp package.
    may_go_on.set()
    memory = opened.tenant("acme").agent(f"gone-{mode}")
    wait_until(lambda: [note.text for note in memory.list()] == ["stored anyway"])


def test_requests_have_a_number_and_are_counted(door: Door) -> None:
    with door.client("acme") as client:
        named = posted(client, "ping", headers={"X-Request-Id": "mine-7"})
    with door.client("default", KeyScope.OPERATOR) as operator:
        counted = operator.get("/metrics").text

    assert (named.status_code, named.headers["X-Request-Id"]) == (200, "mine-7")
    assert 'wellkept_requests_total{method="POST",route="/mcp",status="200"}' in counted


def test_a_key_that_asks_too_often_has_to_wait(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/memory.db", rate_limit=0.0001, rate_burst=2)
    with Wellkept(settings=settings) as store:
        key = store.tenant().keys.create("read").key
        with serving(store, no_auth=False) as address, client_of(address, key) as client:
            statuses = [posted(client, "ping").status_code for _ in range(3)]

    assert statuses == [200, 200, 429]


def test_many_clients_at_once(door: Door, opened: Wellkept) -> None:
    async def work(number: int) -> None:
        key, mode = door.keys["acme" if number % 2 else "other", KeyScope.WRITE], ("legacy", "auto")[number // 2 % 2]
        async with connected(door.address, key, query=f"?agent=crowd-{number}", mode=mode) as client:
            for count in range(3):
                assert answer(await client.call_tool("memory_store", {"text": f"{number}/{count}"}))["ok"]
            assert answer(await client.call_tool("memory_search", {}))["count"] == 3

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(work, number)

    anyio.run(run)
    for number in range(16):
        memory = opened.tenant("acme" if number % 2 else "other").agent(f"crowd-{number}")
        assert {note.text for note in memory.list()} == {f"{number}/{count}" for count in range(3)}


SLOW = """
import sys
from pathlib import Path
from wellkept.api.agent import AgentMemory
from wellkept.server.run import serve
from wellkept.settings import Settings

store = AgentMemory.remember

def slow(self, *given, **more):
    Path(sys.argv[2]).touch()
    Path(sys.argv[3]).read_text()  # until somebody writes to it
    return store(self, *given, **more)

AgentMemory.remember = slow
serve(Settings(url=sys.argv[1], port=0, workers=1), no_auth=True)
"""


def takes_connections(address: str) -> bool:
    where = urlsplit(address)
    with suppress(ConnectionRefusedError), socket.create_connection((where.hostname, where.port)):
        return True
    return False


def test_a_call_under_way_is_answered_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    url, begun, go_on = f"sqlite:///{tmp_path}/memory.db", tmp_path / "begun", tmp_path / "go_on"
    os.mkfifo(go_on)
    params = {"name": "remember", "arguments": {"text": "kept"}}
    with (
        ServerProcess(url, program=(SLOW, url, str(begun), str(go_on))) as server,
        ThreadPoolExecutor() as pool,
        client_of(server.address) as client,
    ):
        asked = pool.submit(posted, client, "tools/call", params)
        wait_until(begun.exists)
        stopping = pool.submit(server.stop)
        wait_until(lambda: not takes_connections(server.address))
        go_on.write_text("now")
        stopped, told = stopping.result(), asked.result()

    assert told.status_code == 200
    assert '\\"ok\\": true' in told.text
    assert stopped == (0, "Stopped; everything is stored.\n", "")
    with Wellkept(settings=Settings(url=url)) as opened:
        assert [note.text for note in opened.agent().list()] == ["kept"]


def test_a_life_on_postgresql(postgres_url: str) -> None:
    async def ask(client: Client) -> None:
        note = answer(await client.call_tool("memory_store", {"text": "Prefers tabs"}))
        assert answer(await client.call_tool("search_my_memories", {"query": "tabs"}))["results"][0]["id"] == note["id"]
        assert (await client.list_resources()).resources[0].uri.endswith("/profile")

    with (
        Wellkept(settings=Settings(url=postgres_url, tool_sets=ALL_SETS)) as store,
        serving(store, no_auth=False) as address,
    ):
        with_client(address, ask, store.tenant("acme").keys.create("write").key, query="?agent=atlas")
        assert [note.text for note in store.tenant("acme").agent("atlas").list()] == ["Prefers tabs"]
        assert store.agent("atlas").list() == []


def test_the_example_of_the_documentation_stores_a_note(door: Door, opened: Wellkept) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```sh\n(curl .*?)^```$", page, re.MULTILINE | re.DOTALL)
    typed = command.replace("\\\n", " ").replace("$WELLKEPT_KEY", door.keys["other", KeyScope.WRITE])
    _, _, body, url, _, header = shlex.split(typed)
    name, _, value = header.partition(": ")
    sent = {"Content-Type": JSON, "Accept": JSON, name: value}  # as --json sends it

    with client_of(door.address) as client:
        told = client.post(url.removeprefix("http://127.0.0.1:8077"), content=body, headers=sent).json()

    id = told["result"]["structuredContent"]["id"]
    assert opened.tenant("other").agent("atlas").get(id).text == "Prefers tabs"


def test_a_stored_text_keeps_the_conversation_of_the_header(door: Door) -> None:
    with door.client("acme", KeyScope.WRITE) as client:

        def call(tool: str, arguments: Json, **options: Any) -> Json:
            params, query = {"name": tool, "arguments": arguments}, "?agent=threads&sets=details"
            answered = posted(client, "tools/call", params, query=query + options.pop("more", ""), **options)
            structured: Json = answered.json()["result"]["structuredContent"]
            return structured

        in_header = call("store_memory", {"content": "one"}, headers={"X-Wellkept-Session": "s-1"})
        in_address = call("store_memory", {"content": "two"}, more="&session=s-2")
        given = call("store_memory", {"content": "three", "thread_id": "s-3"}, more="&session=s-2")
        for session, stored in (("s-1", in_header), ("s-2", in_address), ("s-3", given)):
            found = call("search_memory", {"thread_id": session})["memories"]
            assert [each["memory_key"] for each in found] == [stored["memory_key"]]
