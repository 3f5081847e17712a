"""What comes without a key, or from one tenant, shuts nobody else out."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from tests.server.live import PATIENCE, client_of, serving, wait_until
from tests.server.test_access import BEGUN, GO_ON, waiting_route
from tests.server.test_slow_clients import called, heard
from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid
from wellkept.server.app import create_app
from wellkept.server.http import connection, limits
from wellkept.server.http.buckets import Buckets
from wellkept.settings import Settings

LOGIN = (
    b"POST /admin/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)
WAITING = b"Expect: 100-continue\r\n"
"""The server says 100 when it begins to wait for the body."""

WRONG = "wellkept_mfrw2zi_aaaaaaaa_" + "a" * 52
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@contextlib.contextmanager
def door(**settings: Any) -> Iterator[tuple[str, str, Wellkept, FastAPI]]:
    """A server with keys: its address, a key, its store and the application."""
    apps: list[FastAPI] = []

    def keep(app: FastAPI) -> None:
        apps.append(app)
        waiting_route(app)

    with Wellkept(":memory:", settings=Settings(embedder="off", **settings)) as wellkept:
        key = wellkept.tenant("acme").keys.create("admin").key
        with serving(wellkept, keep, no_auth=False) as address:
            yield address, key, wellkept, apps[0]


def metric(app: FastAPI, name: str, **labels: str) -> float:
    return app.state.metrics.registry.get_sample_value(name, labels) or 0.0


# --- bodies


@pytest.mark.parametrize("length", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
def test_slow_bodies_without_a_key_shut_nobody_out(length: bytes) -> None:
    with door(max_requests=4) as (address, key, _, _app), ExitStack() as lines, client_of(address, key) as client:
        for _ in range(9):
            line = lines.enter_context(called(address))
            line.sendall(LOGIN + WAITING + length + b"\r\n\r\n")
            assert line.recv(1000).startswith(b"HTTP/1.1 100 ")
        assert client.get("/api/agents").status_code == 200
        assert client.get("/health").status_code == 200


def test_slow_bodies_of_one_tenant_shut_nobody_out() -> None:
    with door(max_requests=4) as (address, key, wellkept, _app), ExitStack() as lines:
        head = f"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n".encode()
        for _ in range(9):
            line = lines.enter_context(called(address))
            line.sendall(head + WAITING + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
            assert line.recv(1000).startswith(b"HTTP/1.1 100 ")
        with client_of(address, wellkept.tenant("other").keys.create("read").key) as client:
            assert client.get("/api/agents").status_code == 200


@pytest.mark.parametrize("path", ["/api/agents", "/mcp", "/api/import", "/nothing"])
def test_a_request_without_a_key_is_refused_before_its_body_comes(path: str) -> None:
    with door() as (address, _, _wellkept, _app), called(address) as line:
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabcd".encode())
        assert line.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_body_without_a_key_has_4_kib() -> None:
    with door() as (address, key, _, _app), client_of(address) as client:
        headers = {"Origin": address, **FORM}
        at_most = client.post("/admin/login", content=b"key=" + b"a" * 4092, headers=headers)
        too_long = client.post("/admin/login", content=b"key=" + b"a" * 4093, headers=headers)
        in_chunks = client.post("/admin/login", content=iter([b"a" * 3000, b"a" * 3000]), headers=headers)
        with client_of(address, key) as keyed:
            allowed = keyed.post("/api/kb/documents", json={"title": "Tea", "text": "tea " * 5000})

    assert [each.status_code for each in (at_most, too_long, in_chunks, allowed)] == [401, 413, 413, 201]
    assert "at most 4 KiB without a key" in too_long.text


def test_a_slow_body_without_a_key_is_refused_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_OPEN_SECONDS", 0.2)
    with door() as (address, _, _wellkept, _app), called(address) as line:
        line.sendall(LOGIN + b"Content-Length: 99\r\n\r\nkey")
        assert heard(line).startswith(b"HTTP/1.1 408 ")


def test_bodies_in_memory_are_limited_for_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HELD_BYTES", 1000)
    with door() as (address, key, _, _app), client_of(address, key) as client:
        for size, status in ((400, 201), (600, 503), (400, 200)):
            answer = client.post("/api/kb/documents", json={"title": "Tea", "text": "t" * size})
            assert answer.status_code == status, answer.text
            if status == 503:
                assert (answer.json()["code"], answer.headers["Retry-After"]) == ("overloaded", "1")


# --- answers


def test_answers_nobody_reads_are_limited_for_a_tenant() -> None:
    with (
        door(max_requests=8) as (address, key, wellkept, _app),
        ExitStack() as lines,
        client_of(address, key) as client,
    ):
        for number in range(40):
            wellkept.tenant("acme").agents.add(f"a-{number}", system_prompt="p" * 100_000)
        head = f"GET /api/agents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        where = urlsplit(address)

        def is_refused() -> bool:
            line = lines.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect((where.hostname, where.port))
            line.sendall(head)
            assert line.recv(1), "its answer is on the way"
            return client.get("/api/agents/a-1").status_code == 503

        wait_until(is_refused)
        refused = client.post("/api/agents", json={"id": "late"})
        assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (503, "overloaded", "1")
        assert client.get("/health").status_code == 200
        with client_of(address, wellkept.tenant("other").keys.create("read").key) as other:
            assert other.get("/api/agents").status_code == 200

        lines.close()
        wait_until(lambda: client.get("/api/agents/a-1").status_code == 200)


def test_an_answer_in_pieces_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with door() as (address, key, wellkept, _app), client_of(address, key) as client:
        wellkept.tenant("acme").agents.add("a", system_prompt="p" * 10_000)
        length = len(client.get("/api/agents/a").content)
        for piece in (length - 1, length, length + 1, length // 2, length // 3):
            monkeypatch.setattr(limits, "PIECE_BYTES", piece)
            assert client.get("/api/agents/a").json()["system_prompt"] == "p" * 10_000


@pytest.mark.parametrize("charset", ["undefined", "idna", "utf-7", "utf-16"])
def test_a_form_in_another_charset_is_refused(charset: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\n+2AA-..\r\n--b--\r\n'
    with door() as (address, _, _wellkept, _app), client_of(address) as client:
        sent = {"Origin": address, "Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
        answer = client.post("/admin/login", content=body, headers=sent)
    assert answer.status_code == 400
    assert "in UTF-8" in answer.text


# --- places


def test_one_tenant_leaves_places_to_the_others() -> None:
    with door(max_requests=4) as (address, key, wellkept, _app), ThreadPoolExecutor() as threads:
        headers = {"Authorization": f"Bearer {key}"}
        slow = []
        try:
            for _ in range(3):
                BEGUN.clear()
                slow.append(threads.submit(httpx2.get, f"{address}/api/waiting", headers=headers, timeout=PATIENCE))
                assert BEGUN.wait(PATIENCE)
            with client_of(address, key) as same:
                assert same.get("/api/agents").status_code == 503
            with client_of(address, wellkept.tenant("other").keys.create("read").key) as other:
                assert other.get("/api/agents").status_code == 200
        finally:
            GO_ON.set()
        assert [each.result().status_code for each in slow] == [200] * 3


def test_a_client_that_reads_no_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_STALL_SECONDS", 0.2)
    with door(max_requests=1) as (address, _, _wellkept, app), socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", urlsplit(address).port or 0))
        with contextlib.suppress(OSError):
            line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        wait_until(lambda: app.state.connections._open.total() == 0)
        with client_of(address) as client:
            # The request has its place until its task has noticed that the connection is gone.
            wait_until(lambda: client.get("/openapi.json").status_code == 200)


# --- wrong keys


def test_wrong_keys_are_slowed_down_and_valid_ones_are_not() -> None:
    with door(max_failed_keys=5) as (address, key, wellkept, app), client_of(address, WRONG) as client:
        answers = [client.get("/api/agents") for _ in range(7)]
        assert [each.status_code for each in answers] == [401] * 5 + [429] * 2
        assert (answers[-1].json()["code"], answers[-1].headers["Retry-After"]) == ("rate_limited", "12")
        assert client.get("/health").json() == {"status": "ok"}, "it takes no key"

        late = wellkept.tenant("late").keys.create("read").key
        for good in (key, late):
            with client_of(address, good) as valid:
                assert valid.get("/api/agents").status_code == 200
        with client_of(address) as nobody:
            assert nobody.get("/api/agents").status_code == 401, "no key is no wrong key"

        assert metric(app, "wellkept_refused_total", why="failures") >= 2
        assert metric(app, "wellkept_failed_keys_total") >= 7


def test_an_address_over_its_limit_gets_few_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellkept.server.http.auth.MAX_SUSPECTS", 0)
    with door(max_failed_keys=1) as (address, key, wellkept, _app), client_of(address, key) as known:
        assert known.get("/api/agents").status_code == 200
        with client_of(address, WRONG) as client:
            assert [client.get("/api/agents").status_code for _ in range(2)] == [401, 429]
        assert known.get("/api/agents").status_code == 200, "it was good a moment ago"
        with client_of(address, wellkept.tenant("late").keys.create("read").key) as late:
            assert late.get("/api/agents").status_code == 429


@pytest.mark.parametrize(("path", "body"), [("/admin/login", {"key": WRONG}), ("/admin/open/guessed", {})])
def test_wrong_logins_are_slowed_down(path: str, body: dict[str, str]) -> None:
    with door(max_failed_keys=2) as (address, key, _, _app), client_of(address) as client:
        headers = {"Origin": address}
        answers = [client.post(path, data=body, headers=headers) for _ in range(3)]
        valid = client.post("/admin/login", data={"key": key}, headers=headers)

    assert [each.status_code for each in answers] == [401, 401, 429]
    assert answers[-1].headers["Content-Type"].startswith("text/html")
    assert answers[-1].headers["Retry-After"]
    assert valid.status_code == 303


def test_clients_of_a_trusted_proxy_are_told_apart() -> None:
    asked = {"192.0.2.1": [401, 429], "192.0.2.2": [401], "2001:db8::1": [401], "2001:db8::2": [429]}  # one /64
    settings = {"max_failed_keys": 1, "trusted_proxies": ("127.0.0.0/8",)}
    with door(**settings) as (address, _, _wellkept, _app), client_of(address, WRONG) as client:
        for host, statuses in asked.items():
            for status in statuses:
                assert client.get("/api/agents", headers={"X-Forwarded-For": host}).status_code == status, host


def test_nobody_else_is_believed_about_the_address() -> None:
    with door(max_failed_keys=1) as (address, _, _wellkept, _app), client_of(address, WRONG) as client:
        statuses = [client.get("/api/agents", headers={"X-Forwarded-For": f"192.0.2.{n}"}).status_code for n in (1, 2)]
    assert statuses == [401, 429]


def test_a_proxy_that_is_no_address_is_refused_at_the_start() -> None:
    settings = Settings(embedder="off", trusted_proxies=("nginx",))
    with Wellkept(":memory:", settings=settings) as wellkept, pytest.raises(Invalid, match="trusted_proxies takes"):
        create_app(wellkept)


def test_buckets_keep_a_bounded_number_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellkept.server.http.buckets.SLOTS", 8)
    buckets = Buckets(rate=0.001, burst=2)
    for number in range(100):
        assert buckets.take(f"192.0.2.{number}") == 0.0
    assert [buckets.take("192.0.2.99") > 0 for _ in range(2)] == [False, True], "the latest are remembered"


def test_buckets_are_shared_through_a_file(tmp_path: Path) -> None:
    one, other = (Buckets(rate=0.001, burst=3, path=tmp_path / "rates") for _ in range(2))
    assert [each.take("key") > 0 for each in (one, other, one, other, one)] == [False, False, False, True, True]
    assert one.is_empty("key")
    assert other.is_empty("key")
    assert not other.is_empty("another")


# --- connections


def test_an_address_has_so_many_connections() -> None:
    with door(max_connections=2) as (address, _, _wellkept, app):
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with called(address) as first, called(address) as second:
            for line in (first, second):
                line.sendall(request)
                assert line.recv(65536).startswith(b"HTTP/1.1 200 ")
            with called(address) as third:
                with contextlib.suppress(OSError):
                    third.sendall(request)
                assert heard(third) == b""
            assert metric(app, "wellkept_refused_total", why="connections") == 1
        wait_until(lambda: app.state.connections._open.total() == 0)
        with client_of(address) as client:
            assert client.get("/health").status_code == 200


def test_a_trusted_proxy_has_any_number_of_connections() -> None:
    settings = {"max_connections": 1, "trusted_proxies": ("127.0.0.1",)}
    with door(**settings) as (address, _, _wellkept, _app), called(address) as first, called(address) as second:
        for line in (first, second):
            line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert line.recv(65536).startswith(b"HTTP/1.1 200 ")


# --- headers


def test_every_answer_forbids_caching_and_guessing_its_type() -> None:
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with door() as (address, key, _, _app), client_of(address, key) as client, client_of(address) as nobody:
        answers = [
            client.get("/health"),
            client.get("/docs"),
            client.get("/openapi.json"),
            client.get("/metrics"),
            client.get("/api/agents"),
            client.get("/api/export"),
            client.get("/api/agents/nobody"),
            client.get("/nothing"),
            client.put("/api/agents"),
            client.post("/api/agents", json={}),
            client.delete("/api/agents/nobody"),
            client.post("/mcp", json=initialize, headers={"Accept": "application/json, text/event-stream"}),
            nobody.get("/api/agents"),
            nobody.get("/health", headers={"Host": "evil.example"}),
            nobody.get("/admin/login"),
        ]
        style = nobody.get("/admin/static/console.css")
        with called(address) as line:
            line.sendall(b"What is this\r\n\r\n")
            refused = heard(line)

    for answer in answers:
        assert answer.headers["Cache-Control"] == "no-store", answer.request.url
        assert answer.headers["X-Content-Type-Options"] == "nosniff", answer.request.url
    assert (style.headers["Cache-Control"], style.headers["X-Content-Type-Options"]) == ("max-age=3600", "nosniff")
    assert b"cache-control: no-store" in refused
    assert b"x-content-type-options: nosniff" in refused
