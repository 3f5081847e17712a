"""`wellkept mcp` as a host runs it: a process of its own, spoken to over its standard streams."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.program import shared_warm
from tests.mcp.test_resources_and_prompts import ask_for_resources_and_prompts
from tests.mcp.test_tools import answer
from tests.server.live import PATIENCE
from tests.waiting import PATIENT
from wellkept import Settings, Wellkept
from wellkept.tools import catalog

Ask = Callable[[Client], Awaitable[None]]


SERVER = "wellkept.server.mcp.stdio"


def command(folder: Path, *options: str, is_warm: bool = True) -> list[str]:
    """The program: a fork of a process that has loaded it, which signals do not reach, or from the start."""
    program = [str(shared_warm(SERVER).bin / "wellkept")] if is_warm else [sys.executable, "-m", "wellkept"]
    return [*program, "mcp", "--url", f"sqlite:///{folder}/memories.db", *options]


def environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("WELLKEPT_", "OPENAI_"))}
    return inherited | PATIENT


def with_server(folder: Path, ask: Ask, *options: str, errors: TextIO = sys.stderr, mode: str = "legacy") -> None:
    program, *arguments = command(folder, *options)
    parameters = StdioServerParameters(command=program, args=arguments, env=environment(), cwd=folder)

    async def run() -> None:
        async with Client(stdio_client(parameters, errors), mode=mode, read_timeout_seconds=PATIENCE) as client:
            await ask(client)

    anyio.run(run)


def lines(*messages: object) -> str:
    return "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in messages)


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return request(id, "tools/call", name=tool, arguments=arguments)


HELLO = request(
    0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}
)
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def run_with(folder: Path, sent: str, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the server on input that ends at once."""
    return subprocess.run(
        command(folder, *options),
        input=sent,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=environment() | variables,
        timeout=PATIENCE,
        check=False,
    )


def test_a_client_lists_and_calls_and_memories_outlive_the_server(tmp_path: Path) -> None:
    async def first(client: Client) -> None:
        default = [tool.name for tool in catalog.select_tools()]
        assert [tool.name for tool in (await client.list_tools()).tools] == default
        stored = await client.call_tool("remember", {"text": "Prefers tabs — größer 🎉"})
        assert answer(stored) == {"ok": True, "id": "m-1"}
        with pytest.raises(MCPError, match="Unknown tool: 'no_such_tool'"):
            await client.call_tool("no_such_tool", {})

    async def second(client: Client) -> None:
        found = answer(await client.call_tool("recall", {"query": "tabs"}))
        assert [hit["text"] for hit in found["results"]] == ["Prefers tabs — größer 🎉"]

    with_server(tmp_path, first, "--agent", "atlas")
    with_server(tmp_path, second, "--agent", "atlas", mode="auto")
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memories.db")) as store:
        assert len(store.agent("atlas").list()) == 1
        assert store.agent("default").list() == []


def test_only_the_chosen_sets_are_offered_and_calls_run_at_once(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "memory_store",
            "memory_search",
            "memory_delete",
        }
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(client.call_tool, "memory_store", {"text": f"fact number {number}"})
        found = answer(await client.call_tool("memory_search", {"query": "fact"}))
        assert found["count"] == 20

    with_server(tmp_path, ask, "--sets", "notes")
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memories.db")) as store:
        assert len(store.agent().list(limit=100)) == 40


def test_resources_and_prompts_are_offered(tmp_path: Path) -> None:
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memories.db")) as store:
        memory = store.agent("atlas")
        memory.remember("I am careful with money", kind="core")
        memory.remember("The deploy of the shop failed", kind="episode", category="error")
        key = memory.details.store("one\ntwo\n", description="A list").key

    async def ask(client: Client) -> None:
        await ask_for_resources_and_prompts(client, key)

    with_server(tmp_path, ask, "--agent", "atlas", "--sets", ",".join(catalog.SETS), mode="auto")


def test_two_servers_share_one_store(tmp_path: Path) -> None:
    async def outer(client: Client) -> None:
        await client.call_tool("remember", {"text": "from the first"})
        program, *arguments = command(tmp_path)
        second = StdioServerParameters(command=program, args=arguments, env=environment(), cwd=tmp_path)
        async with Client(second) as other:
            await other.call_tool("remember", {"text": "from the second"})
        found = answer(await client.call_tool("list_memories", {}))
        assert [note["text"] for note in found["memories"]] == ["from the second", "from the first"]

    with_server(tmp_path, outer)


def test_everything_asked_before_the_input_ends_is_answered_and_nothing_else_is_written(tmp_path: Path) -> None:
    asked = [call(number, "remember", text=f"fact number {number}") for number in range(1, 31)]

    ran = run_with(tmp_path, lines(HELLO, READY, *asked))

    assert (ran.returncode, ran.stderr) == (0, "")
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {each["jsonrpc"] for each in answers} == {"2.0"}
    assert sorted(each["id"] for each in answers) == list(range(31))
    assert all(each["result"]["structuredContent"]["ok"] for each in answers if each["id"])


def test_strange_input_is_answered_where_it_can_be_and_never_fatal(tmp_path: Path) -> None:
    half_a_pair = json.dumps(call(1, "remember", text="cut \ud83d"), ensure_ascii=True) + "\n"
    no_object = request(2, "tools/call", name="remember", arguments=["a list"])

    ran = run_with(
        tmp_path,
        lines(HELLO, READY, "not json\n", "[]\n", "7\n", "\n", "{}\n", half_a_pair, no_object, request(3, "no/method")),
    )

    answers = {each["id"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert ran.returncode == 0
    assert "surrogate" in answers[1]["result"]["structuredContent"]["error"]
    assert answers[2]["error"]["code"] == -32602
    assert answers[3]["error"]["code"] == -32601


def test_a_client_that_leaves_without_a_word_is_no_problem(tmp_path: Path) -> None:
    ran = run_with(tmp_path, "")

    assert (ran.returncode, ran.stdout) == (0, "")


def test_an_unknown_set_is_refused_on_standard_error(tmp_path: Path) -> None:
    ran = run_with(tmp_path, "", "--sets", "notes,nots")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("There is no tool set 'nots'; the sets are ")
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "memories.db").exists()


def test_warnings_go_to_standard_error_only(tmp_path: Path) -> None:
    out_of_reach = {"WELLKEPT_EMBEDDER": "openai:small", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    ran = run_with(tmp_path, lines(HELLO, READY, call(1, "recall", query="tabs")), **out_of_reach)

    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [0, 1]
    assert "Searched by words alone" in ran.stderr
    assert ran.returncode == 0


@pytest.mark.parametrize(("ending", "code"), [(None, 0), (signal.SIGINT, -signal.SIGINT)])
def test_it_ends_when_it_should(tmp_path: Path, ending: signal.Signals | None, code: int) -> None:
    with subprocess.Popen(
        command(tmp_path, is_warm=False),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
        env=environment(),
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(lines(HELLO, READY, call(1, "remember", text="Prefers tabs")))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 0
        assert json.loads(server.stdout.readline())["result"]["structuredContent"]["ok"]

        if ending is None:
            server.stdin.close()
        else:
            server.send_signal(ending)
        assert server.wait(PATIENCE) == code

    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memories.db")) as store:
        assert [memory.text for memory in store.agent().list()] == ["Prefers tabs"]


def test_a_person_who_starts_it_is_told_what_it_waits_for(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command(tmp_path), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        first, _, last = (process.stderr.readline() for _ in range(3))
        os.write(ours, b"\x04")
        out, more = process.communicate(timeout=PATIENCE)
    os.close(ours)

    assert first.startswith(b"This waits for an agent host to speak MCP")
    assert last == b"Ctrl-D ends it.\n"
    assert (out, more, process.returncode) == (b"", b"", 0)
