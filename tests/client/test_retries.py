"""A client repeats what can be repeated, and says clearly what cannot."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.client.flaky import DROP, answer, flaky, refusal
from tests.server.live import serving
from wellkept import AsyncClient, Client, Invalid, NotFound, Settings, StoreAway, StoreBusy, Wellkept, WellkeptError
from wellkept.client import connection
from wellkept.errors import DiskFull, ModelRefused, StoreError, TimedOut

STORED = answer(201, {"id": "m-1", "kind": "note", "text": "x", "created_at": "2026-01-31T12:00:00Z", "tags": []})
NO_HITS = answer(200, {"hits": [], "missing": [], "heading": ""})
PAGE = answer(200, {"items": [], "next_cursor": None})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)


def test_a_write_is_repeated_under_one_key() -> None:
    script = (DROP, refusal(503, "overloaded", Retry_After="0"), refusal(429, "rate_limited", Retry_After="0"), STORED)
    with flaky(*script) as server, Client(server.address) as client:
        assert client.agent("a").remember("x").id == "m-1"
        assert len(set(server.keys)) == 1
        assert server.keys[0]
        assert len(server.keys) == 4


def test_a_put_whose_answer_was_lost_is_not_repeated() -> None:
    with flaky(DROP, STORED) as server, Client(server.address) as client:
        with pytest.raises(StoreAway):
            client.agent("a").items.put("users", "k", 1)
        assert len(server.keys) == 1


def test_each_write_has_its_own_key_and_reads_have_none() -> None:
    with flaky(STORED, STORED, DROP, NO_HITS, DROP, PAGE) as server, Client(server.address) as client:
        agent = client.agent("a")
        agent.remember("x")
        agent.remember("x")
        assert agent.recall("x") == []
        assert agent.list() == []
        assert server.keys[0] != server.keys[1]
        assert server.keys[2:] == [None] * 4


def test_retries_end() -> None:
    with (
        flaky(*[refusal(503, "store_busy", Retry_After="0")] * 3) as server,
        Client(server.address, retries=2) as client,
    ):
        with pytest.raises(StoreBusy) as caught:
            client.agent("a").remember("x")
        assert (caught.value.retry_after, len(server.requests)) == (0.0, 3)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (refusal(503, "timeout"), TimedOut),
        (refusal(503, "store", X_Wellkept_Error='{"type": "DiskFull"}'), DiskFull),
        (refusal(502, "model", X_Wellkept_Error='{"type": "ModelRefused"}'), ModelRefused),
        (refusal(503, "store", X_Wellkept_Error='{"type": "os"}'), StoreError),
        (refusal(429, "rate_limited", Retry_After="3600"), StoreBusy),
        (refusal(413, "too_large"), Invalid),
        (refusal(404, "not_found"), NotFound),
        (refusal(400, "of tomorrow"), WellkeptError),
        (answer(200, "<html>"), StoreError),
        (answer(404, "<html>"), StoreError),
        (answer(302, "", Location="http://example.org"), StoreError),
    ],
)
def test_other_refusals_are_not_repeated(script: bytes, expected: type[WellkeptError]) -> None:
    with flaky(script, STORED) as server, Client(server.address) as client:
        with pytest.raises(WellkeptError) as caught:
            client.agent("a").remember("x")
        assert type(caught.value) is expected
        assert len(server.requests) == 1


def test_a_proxy_without_a_server_behind_it_is_asked_again() -> None:
    with flaky(answer(502, "<html>Bad Gateway"), STORED) as server, Client(server.address) as client:
        assert client.agent("a").remember("x").id == "m-1"


def test_a_deletion_whose_answer_was_lost_has_happened() -> None:
    with flaky(DROP, refusal(404, "not_found")) as server, Client(server.address) as client:
        client.agent("a").forget("m-1")
        assert len(server.requests) == 2
    with flaky(refusal(404, "not_found")) as server, Client(server.address) as client, pytest.raises(NotFound):
        client.agent("a").forget("m-1")


def test_an_edit_whose_answer_was_lost_is_not_repeated() -> None:
    with flaky(DROP, STORED) as server, Client(server.address) as client:
        with pytest.raises(StoreAway):
            client.agent("a").update("m-1", text="y")
        assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_named_and_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "secret-key", retries=1) as client:
        with pytest.raises(StoreAway, match=f"127.0.0.1:{port} cannot be reached") as caught:
            client.agent("a").remember("x")
        assert caught.value.retry_after == 1.0
        assert "secret-key" not in f"{caught.value!r}{client!r}{client.agent('a')!r}{vars(client)}"


def test_a_silent_server_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(address, timeout=0.2) as client, pytest.raises(TimedOut, match="did not answer in time"):
            client.agent("a").recall("x")


def test_awaited_requests_are_repeated_as_well() -> None:
    async def work(address: str) -> None:
        async with AsyncClient(address) as client:
            assert (await client.agent("a").remember("x")).id == "m-1"

    with flaky(DROP, refusal(503, "overloaded", Retry_After="0"), STORED) as server:
        asyncio.run(work(server.address))
        assert len({*server.keys}) == 1


def test_headers_and_a_prefix_reach_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with flaky(STORED, PAGE) as server, Client(f"{server.address}/memory/", " the-key ") as client:
        client.agent("a b".replace(" ", "-")).for_user("u-7").remember("x")
        client.agent("ü").list()
        first, headers = server.requests[0]
        assert first == "POST /memory/api/agents/a-b/memories HTTP/1.1"
        assert server.requests[1][0].startswith("GET /memory/api/agents/%C3%BC/memories?limit=100")
        assert headers["authorization"] == "Bearer the-key"
        assert headers["x-wellkept-user"] == "u-7"
        assert "x-wellkept-user" not in server.requests[1][1]
    assert "the-key" not in caplog.text


def test_an_error_names_its_request() -> None:
    missing = refusal(404, "not_found", X_Request_Id="abc123")
    with flaky(missing) as server, Client(server.address) as client, pytest.raises(NotFound) as caught:
        client.agent("a").get("m-1")
    assert caught.value.request_id == "abc123"
    assert caught.value.__notes__ == ["The request has the id abc123 in the server's log."]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://x", {}),
        ("http://", {}),
        ("http://ann:pw@localhost", {}),
        ("http://localhost:x", {}),
        ("http://localhost", {"key": "a\nb"}),
        ("http://localhost", {"timeout": 0}),
        ("http://localhost", {"retries": -1}),
    ],
)
def test_wrong_addresses_are_refused(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        Client(url, **options)
    assert "pw" not in str(refused.value)


def test_a_closed_client_says_so() -> None:
    client = Client("http://127.0.0.1:1")
    client.close()
    with pytest.raises(StoreError, match="closed"):
        client.agent("a").list()


def test_settings_name_the_server() -> None:
    with Client(settings=Settings(server="http://127.0.0.1:1/x", key="k", agent="ann")) as client:
        assert repr(client.agent()) == "AgentClient('http://127.0.0.1:1/x', agent='ann')"
    assert "hunter2" not in repr(Settings(key="hunter2"))


def test_a_missing_package_is_named() -> None:
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from wellkept import Client, Invalid\n"
        "try: Client('http://127.0.0.1:1')\n"
        "except Invalid as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(
        "A client needs the package 'httpx2'; run: pip install 'wellkept[client]' (in a clone: "
    )


def test_a_client_is_shared_by_threads(tmp_path: Path) -> None:
    with (
        Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memory.db")) as wellkept,
        serving(wellkept) as address,
        Client(address) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        agent, start = client.agent("many"), threading.Barrier(8)

        def write(number: int) -> str:
            if number < 8:
                start.wait()
            return agent.remember(f"Fact {number}", kind="journal").id

        assert len(set(pool.map(write, range(64)))) == 64
        assert len(wellkept.agent("many").list()) == 64


def test_a_write_whose_answer_is_lost_is_stored_once(tmp_path: Path) -> None:
    """Between client and server, a proxy delivers the request and loses the answer."""
    with (
        Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/memory.db")) as wellkept,
        serving(wellkept) as address,
    ):
        port = int(address.rpartition(":")[2])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            proxy = threading.Thread(target=_lose_first_answer, args=(listener, port))
            proxy.start()
            with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
                kept = client.agent("once").remember("Said once", kind="journal")
            proxy.join()
        assert wellkept.agent("once").list() == [kept]


def _lose_first_answer(listener: socket.socket, port: int) -> None:
    for is_lost in (True, False):
        outside, _ = listener.accept()
        with outside, socket.create_connection(("127.0.0.1", port)) as inside:
            request = outside.recv(65_536)
            while b"Said once" not in request:
                request += outside.recv(65_536)
            inside.sendall(request)
            received = inside.recv(65_536)
            # Head and body may arrive one after the other.
            while not received.endswith(b"}"):
                received += inside.recv(65_536)
            if not is_lost:
                outside.sendall(received)
