"""Every operation a request can start, with the worst input found: it stays bounded, and can be stopped."""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.documents import pdf
from tests.hostile.bombs import zipped
from tests.server.live import ServerProcess, client_of, serving
from tests.waiting import eventually
from wellkept.api.wellkept import Wellkept
from wellkept.deadline import DEADLINE, Deadline
from wellkept.errors import Cancelled
from wellkept.prompt import summaries as conversation
from wellkept.settings import Settings

AGENT = "/api/agents/ann"
MCP = "/mcp?agent=ann&sets=details"
MAX_GROWTH_MB = 200
"""What one request may add to the memory of the server, which takes about 110 to begin with."""

MAX_ANSWER = 2_000_000
HEADER = b'{"wellkept":"export","version":1,"tenant":"default","exported_at":"2026-01-31T12:00:00.000000Z"}\n'
PROGRAM = """
import sys
from wellkept.server.run import serve
from wellkept.settings import Settings
serve(Settings(url=sys.argv[1], port=0, workers=1, request_timeout=600), no_auth=True)
"""
Send = Callable[[httpx2.Client], httpx2.Response]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db"
    with ServerProcess(url, program=(PROGRAM, url)) as server:
        yield server


def reading(text: str, **part: Any) -> Send:
    def send(client: httpx2.Client) -> httpx2.Response:
        return client.get(f"{AGENT}/details/{stored(client, text)}", params=part)

    return send


def stored(client: httpx2.Client, text: str) -> str:
    answer = client.post(f"{AGENT}/details", json={"content": text})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory_key"])


def posting(path: str, body: str | dict[str, Any]) -> Send:
    content = body if isinstance(body, str) else json.dumps(body)
    return lambda client: client.post(path, content=content, headers={"Content-Type": "application/json"})


def getting(path: str, **query: Any) -> Send:
    return lambda client: client.get(path, params=query)


def ingesting(name: str, content: str | bytes) -> Send:
    file = content if isinstance(content, bytes) else content.encode()
    return lambda client: client.post("/api/kb/documents", files={"file": (name, file)})


def importing(content: bytes, **wishes: Any) -> Send:
    return lambda client: client.post("/api/import", params={"dry_run": True, **wishes}, content=content)


def tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def calling_tool(client: httpx2.Client) -> httpx2.Response:
    arguments = {"memory_key": stored(client, ROWS), "json_path": stars(60)}
    answer = client.post(MCP, json=tool("retrieve_memory", arguments), headers=ACCEPT)
    assert answer.json()["result"]["structuredContent"]["content"].startswith("[")
    return answer


def stars(count: int) -> str:
    return f"$[{','.join('*' * count)}]"


ACCEPT = {"Accept": "application/json, text/event-stream"}
ROWS = json.dumps([["x" * 20] * 40] * 800)
TABLE = "|a" * 900 + "|\n" + "|-" * 900 + "|\n" + ("|b" * 900 + "|\n") * 200
DENSE = "[" + '{"":0},' * 120_000 + "1]"

WORST: dict[str, Callable[[], tuple[Send, int]]] = {
    "json path, stars": lambda: (reading(ROWS, json_path=stars(60)), 200),
    "json path, stars, short page": lambda: (reading(ROWS, json_path=stars(60), limit=100), 200),
    "json path, last page": lambda: (reading(ROWS, json_path=stars(60), offset=4_000_000, limit=100), 200),
    "json path, many selectors": lambda: (reading(ROWS, json_path=stars(240)), 200),
    "json path, descents": lambda: (reading("[" * 90 + "]" * 90, json_path="$" + "..*" * 30 + ".x"), 400),
    "json path, filters": lambda: (reading(f"[{DENSE}]", json_path=f"$[?count(@{stars(60)[1:]})>9]"), 400),
    "json path, indentation": lambda: (reading("[" * 900 + "1," * 99_999 + "1" + "]" * 900, json_path="$"), 200),
    "json path, nested brackets": lambda: (reading("{}", json_path="$[?" + "(" * 450), 400),
    "json path, dense document": lambda: (reading("[" + "{}," * 1_200_000 + "1]", json_path="$[0]"), 400),
    "json path, half a surrogate pair": lambda: (reading('["\\ud800"]', json_path="$"), 200),
    "json path, tool": lambda: (calling_tool, 200),
    "grep, every line": lambda: (reading("a\n" * 900_000, grep="a", context=50, limit=1_000_000), 200),
    "grep, one line": lambda: (reading("ab" * 2_000_000, grep="/x*/", limit=1_000_000), 200),
    "grep, expression": lambda: (reading("ab" * 2_000_000, grep="/(.*a.*b){10}c/"), 200),
    "tail of line breaks": lambda: (reading("\n" * 900_000, tail=10**15, limit=1_000_000), 200),
    "body of many values": lambda: (posting(f"{AGENT}/memories", '{"text":[' + "{}," * 2_500_000 + "1]}"), 413),
    "body nested": lambda: (posting(f"{AGENT}/memories", '{"text":' + "[" * 40_000), 400),
    "body of many fields": lambda: (posting(f"{AGENT}/recall", json.dumps({f"k{i}": 1 for i in range(300_000)})), 413),
    "audit meta": lambda: (posting("/api/audit", '{"action":"a.b","meta":{"x":[' + "0," * 3_000_000 + "0]}}"), 413),
    "recall": lambda: (posting(f"{AGENT}/recall", {"query": "what did I say last May " * 300_000}), 200),
    "explain": lambda: (posting(f"{AGENT}/explain", {"query": "what did I say " * 100_000, "id": "m-1"}), 200),
    "inject": lambda: (posting(f"{AGENT}/inject", {"message": "what did I say " * 300_000}), 200),
    "context": lambda: (posting(f"{AGENT}/context", {"session_id": "s", "message": "hi there " * 500_000}), 200),
    "capture": lambda: (posting(f"{AGENT}/capture", {"output": "token=" * 1_000_000}), 200),
    "search by text": lambda: (getting(f"{AGENT}/memories", q="a" * 60_000), 200),
    "search in history": lambda: (getting("/api/audit", q="a" * 60_000), 200),
    "erasure": lambda: (posting("/api/erase", {"subject": "text:in", "dry_run": True}), 200),
    "export": lambda: (getting("/api/export"), 200),
    "import, bomb": lambda: (importing(zipped("conversations.json", b" " * 1_000_000, 300), format="chatgpt"), 400),
    "import, dense entry": lambda: (importing(b"[[" + b"{}," * 3_000_000 + b"1]]", format="mem0"), 200),
    "import, blanks": lambda: (importing(b"[" + b" " * 20_000_000 + b"]", format="mem0"), 200),
    "import, dense line": lambda: (importing(gzip.compress(HEADER + b'{"row":[' + b"{}," * 4_000_000 + b"1]}\n")), 400),
    "import, long line": lambda: (importing(gzip.compress(HEADER + b" " * 20_000_000)), 400),
    "markdown, list": lambda: (ingesting("a.md", "- a\n" * 60_000), 400),
    "markdown, table": lambda: (
        ingesting("b.md", TABLE),
        201,
    ),
    "markdown, lines": lambda: (ingesting("c.md", "a\n" * 2_000_000), 400),
    "markdown, quotes": lambda: (ingesting("c.md", (">" * 60 + " a\n") * 2_000), 201),
    "html, list": lambda: (ingesting("a.html", "<li>a" * 900_000), 400),
    "html, depth": lambda: (ingesting("a.html", "<div>" * 900_000), 400),
    "html, entities": lambda: (ingesting("a.html", "&amp;" * 200_000), 201),
    "pdf": lambda: (ingesting("a.pdf", pdf(*["word " * 40] * 50)), 201),
}


@pytest.mark.parametrize("name", WORST)
def test_worst_input_is_answered_in_bounded_memory(server: ServerProcess, name: str) -> None:
    send, status = WORST[name]()
    before = memory_mb(server.pid, "VmRSS")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak is measured from now on
    with client_of(server.address) as client:
        client.timeout = 300
        answer = send(client)

    assert answer.status_code == status, answer.text[:300]
    assert len(answer.content) < MAX_ANSWER or name == "export"
    assert memory_mb(server.pid, "VmHWM") - before < MAX_GROWTH_MB
    if status >= 400:
        assert answer.json()["error"].endswith(".")


def memory_mb(pid: int, field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1000


HALF = ",".join(["0.5"] * 20_000)
ENDLESS = "[" * 6 + f"[[{HALF}],[{HALF}]]" + "]" * 6
ENDLESS_PATH = "$" + "[0,0,0,0,0,0,0,0]" * 6 + "[?@[0]!=@[1]]"
"""Compares two equal lists 262,144 times, which takes minutes and finds nothing."""


@pytest.fixture(scope="module")
def slow_key(client: httpx2.Client) -> str:
    return stored(client, f"[{ENDLESS}]")


def read_request(key: str) -> httpx2.Request:
    return httpx2.Request("GET", f"http://127.0.0.1{AGENT}/details/{key}", params={"json_path": ENDLESS_PATH})


def tool_request(key: str) -> httpx2.Request:
    call = tool("retrieve_memory", {"memory_key": key, "json_path": ENDLESS_PATH})
    return httpx2.Request("POST", f"http://127.0.0.1{MCP}", json=call, headers=ACCEPT)


@pytest.mark.parametrize("make", [read_request, tool_request])
def test_work_stops_when_client_is_gone(
    client: httpx2.Client, address: str, slow_key: str, make: Callable[[str], httpx2.Request]
) -> None:
    def under_way() -> int:
        found = re.search(r"wellkept_requests_under_way (\d+)", client.get("/metrics").text)
        assert found is not None
        return int(found[1]) - 1  # the one that asks

    request = make(slow_key)
    head = f"{request.method} {request.url.raw_path.decode()} HTTP/1.1\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}{lines}\r\n".encode() + request.read())
        eventually(lambda: under_way() == 1)
    eventually(lambda: under_way() == 0)


def test_request_that_takes_too_long_is_stopped_with_a_sentence(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", request_timeout=1)
    with Wellkept(settings=settings) as wellkept, serving(wellkept) as address, client_of(address) as client:
        key = stored(client, f"[{ENDLESS}]")
        answer = client.send(client.build_request("GET", f"{AGENT}/details/{key}", params={"json_path": ENDLESS_PATH}))
        told = client.post(MCP, content=tool_request(key).read(), headers={**ACCEPT, **JSON}).json()

    assert (answer.status_code, answer.json()["code"]) == (503, "timeout")
    assert answer.json()["error"].startswith("This took longer than 1 seconds, so it was stopped. Ask for less")
    assert told["result"]["structuredContent"] == {"ok": False, "error": answer.json()["error"]}


JSON = {"Content-Type": "application/json"}


@pytest.fixture
def deadline() -> Iterator[Deadline]:
    deadline = Deadline(60)
    token = DEADLINE.set(deadline)
    yield deadline
    DEADLINE.reset(token)


def test_import_that_is_stopped_goes_on_when_sent_again(tmp_path: Path, deadline: Deadline) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"memory": f"Fact number {number} about tea."} for number in range(12)]))

    def hang_up(done: int, total: int) -> None:
        if done == 5:
            deadline.cancel()

    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path / 'memory.db'}")) as wellkept:
        tenant, ann = wellkept.tenant(), wellkept.agent("ann")
        with pytest.raises(Cancelled):
            tenant.data.import_(file, format="mem0", agent="ann", progress=hang_up)
        DEADLINE.set(None)
        assert len(ann.list(limit=100)) == 5

        imported = tenant.data.import_(file, format="mem0", agent="ann")

        assert (imported.added, imported.present) == ({"memories": 7}, {"memories": 5})


@pytest.mark.parametrize("is_summarized", [False, True])
def test_reading_a_long_conversation_can_be_stopped(
    is_summarized: bool, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "PAGE", 3)
    settings = Settings(summary_enabled=is_summarized, summary_threshold=100)
    with Wellkept(":memory:", settings=settings) as wellkept:
        ann = wellkept.agent("ann")
        for number in range(5):
            ann.log_turn("s", user=f"question {number}", assistant=f"answer {number}")
        assert [turn.position for turn in ann.sessions.conversation("s").turns] == list(range(1, 11))
        deadline.cancel()
        with pytest.raises(Cancelled):
            ann.sessions.conversation("s")
        DEADLINE.set(None)


def test_document_that_is_stopped_is_not_stored(tmp_path: Path, deadline: Deadline) -> None:
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path / 'memory.db'}")) as wellkept:
        deadline.cancel()
        with pytest.raises(Cancelled):
            wellkept.tenant().knowledge.ingest_text("# Tea\n\nGreen.", title="Tea")
        DEADLINE.set(None)

        assert list(wellkept.tenant().knowledge.list()) == []
