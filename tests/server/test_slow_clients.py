"""Clients that dawdle are hung up on, and those that wait for an answer are not."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.server.live import PATIENCE, wait_until
from wellkept.server.http import connection, limits

MUCH = 1000 * connection.MAX_HEADER_BYTES
"""More than lies on the way between two programs when the other one does not get to read it."""


def called(address: str) -> socket.socket:
    where = urlsplit(address)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE)


@pytest.fixture
def line(address: str) -> Iterator[socket.socket]:
    with called(address) as opened:
        yield opened


def heard(line: socket.socket) -> bytes:
    """Everything until the server hangs up, be it that a byte was still on its way to it."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while more := line.recv(65536):
            said += more
    return said


def answer(line: socket.socket) -> bytes:
    """One answer, whole, which is a JSON object; or nothing, if the server has hung up."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while not said.endswith(b"}") and (more := line.recv(65536)):
            said += more
    return said


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost: local"])
def test_headers_that_do_not_come_end_the_connection(
    begun: bytes, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(connection, "MAX_HEADER_SECONDS", 0.2)
    with called(address) as late:
        with contextlib.suppress(OSError):  # a busy machine may have got so far already
            late.sendall(begun)
        assert heard(late) == b""


def test_bytes_one_by_one_buy_no_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_HEADER_SECONDS", 0.3)
    with called(address) as late:
        stop = threading.Event()

        def drip() -> None:
            for byte in b"GET /health HTTP/1.1\r\n" + b"X-Slow: 1\r\n" * 1000:
                try:
                    late.sendall(bytes([byte]))
                except OSError:
                    return
                if stop.wait(0.05):
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert heard(late) == b""
        finally:
            stop.set()
            dripping.join()


def test_a_body_that_dawdles_is_refused(line: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BODY_SECONDS", 0.2)
    line.sendall(
        b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    )
    head, _, body = heard(line).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["code"] == "too_slow"


def test_a_second_request_on_the_same_connection_has_its_own_time(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_HEADER_SECONDS", 0.5)
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def is_answered(line: socket.socket) -> bool:
        with contextlib.suppress(ConnectionError):
            line.sendall(request)
        return answer(line).startswith(b"HTTP/1.1 200 ")

    with contextlib.ExitStack() as lines:
        tried: list[socket.socket] = []

        def try_again() -> bool:
            tried.append(lines.enter_context(called(address)))
            return is_answered(tried[-1])

        wait_until(try_again)
        threading.Event().wait(0.6)
        assert is_answered(tried[-1])


@pytest.mark.parametrize(
    "sent",
    [
        b"What is this\r\n\r\n",
        b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n Y: 2\r\n\r\n",
    ],
    ids=["no HTTP", "no method", "two lengths", "folded header"],
)
def test_what_is_no_request_is_refused_in_the_same_shape(line: socket.socket, sent: bytes) -> None:
    line.sendall(sent)
    head, _, body = heard(line).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"ok": False, "error": connection.NOT_HTTP, "code": "invalid"}


@pytest.mark.parametrize("path", ["/api/agents", "/api/kb/documents", "/agent/run", "/api/import"])
def test_a_client_that_leaves_within_its_body_fills_no_log(
    address: str, client: httpx2.Client, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    counted = f'wellkept_requests_total{{method="POST",route="{path}",status="400"}}'
    with called(address) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
        line.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 100 "), "it is waiting for the body"
    wait_until(lambda: counted in client.get("/metrics").text)
    assert caplog.records == []


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"2\r\n{}}\r\n", b"-1\r\n"])
def test_a_chunk_that_is_none_is_refused_in_the_same_shape(line: socket.socket, chunk: bytes) -> None:
    head = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    line.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n" + chunk)
    head, _, body = heard(line).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"] == connection.NOT_HTTP


@pytest.mark.parametrize("more", [b"X-Many: 1\r\n", b"x"], ids=["many", "one long"])
def test_headers_without_end_are_refused(line: socket.socket, more: bytes) -> None:
    line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-First: ")
    sent = 0
    with contextlib.suppress(ConnectionError):  # we are hung up on, while there is more to say
        while sent < MUCH:
            sent += line.send(more * 1000)
    assert sent < MUCH


def test_who_offers_another_protocol_is_answered_in_this_one(line: socket.socket) -> None:
    """Some clients offer HTTP/2 with their first request, whatever it is."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
    body = b'{"id": "upgrading"}'
    for path, status in (("/api/agents", b"201"), ("/api/agents", b"409")):
        line.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode()
            + offer
            + f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert answer(line).startswith(b"HTTP/1.1 " + status)
