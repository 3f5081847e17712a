"""Every refusal has one shape, a stable code and a sentence that helps."""

from __future__ import annotations

import base64
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest
from fastapi import FastAPI

from tests.server.live import PATIENCE, add_route, client_of, serving
from wellkept import errors
from wellkept.api.wellkept import Wellkept
from wellkept.arguments import FORMER
from wellkept.server.http.errors import STATUS
from wellkept.server.http.limits import MAX_BODY_BYTES
from wellkept.settings import Settings

JSON = {"Content-Type": "application/json"}
MEMORIES = "{ann}/memories"
SECRET = "AKIAIOSFODNN7EXAMPLQ"  # one letter off the example everybody knows
REJECTED = "text appears to contain a secret — not stored"


@dataclass(frozen=True)
class Case:
    """A request that is refused. `{ann}` is an agent with the memory m-1, `{bob}` one with m-1 to m-3."""

    name: str
    method: str
    path: str
    status: int
    code: str
    says: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def sending(name: str, path: str, value: Any, status: int, code: str, says: str, method: str = "POST") -> Case:
    return Case(name, method, path, status, code, says, json.dumps(value).encode(), JSON)


def foreign_cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


DEEP: dict[str, Any] = {}
for _ in range(900):
    DEEP = {"a": DEEP}
MIN_SCORE = {"min_score": 0.5}
EVENT = {"action": "order.refund", "message": "m"}
TWICE = b'{"action": "order.refund", "message": "m", "meta": {"a": {"b": 1, "b": 2}}}'

CASES = [
    sending("unknown field", MEMORIES, {"text": "a", "tagz": []}, 422, "unprocessable", "There is no field 'tagz'; "),
    sending("half a character as field", MEMORIES, {"text": "a", "\ud800": 1}, 400, "invalid", "surrogate"),
    sending("former field", "{ann}/recall", {"query": "a", **MIN_SCORE}, 422, "unprocessable", FORMER["min_score"]),
    sending("former field", "{ann}/context", {"message": "a", **MIN_SCORE}, 422, "unprocessable", FORMER["min_score"]),
    sending("former field", "/api/kb/search", {"query": "a", **MIN_SCORE}, 422, "unprocessable", FORMER["min_score"]),
    Case("former parameter", "GET", "{ann}/memories?min_score=0.5", 422, "unprocessable", FORMER["min_score"]),
    sending("unknown field of an agent", "/api/agents", {"id": "a", "nam": "b"}, 422, "unprocessable", "'nam'"),
    sending("no text", MEMORIES, {"kind": "note"}, 422, "unprocessable", "The field text is required."),
    sending("wrong type", MEMORIES, {"text": 7}, 422, "unprocessable", "text should be a valid string."),
    sending("wrong type inside", MEMORIES, {"text": "a", "tags": ["b", 1]}, 422, "unprocessable", "tags[1] should be"),
    sending("importance as text", MEMORIES, {"text": "a", "importance": "1"}, 422, "unprocessable", "importance"),
    sending("importance as truth", MEMORIES, {"text": "a", "importance": True}, 422, "unprocessable", "importance"),
    sending("a list as body", MEMORIES, [], 422, "unprocessable", "must be a JSON object"),
    sending("null as body", MEMORIES, None, 422, "unprocessable", "must be a JSON object"),
    sending("null as name", "{ann}", {"name": None}, 422, "unprocessable", "name should be", "PATCH"),
    sending("wrong kind", MEMORIES, {"text": "a", "kind": "x"}, 400, "invalid", "There is no kind 'x'; the kinds are"),
    sending("wrong scope", MEMORIES, {"text": "a", "scope": "x"}, 400, "invalid", "There is no scope 'x'"),
    sending("blank text", MEMORIES, {"text": " \n "}, 400, "invalid", "Content cannot be blank"),
    sending("blank text in edit", "{ann}/memories/m-1", {"text": ""}, 400, "invalid", "cannot be blank", "PATCH"),
    sending("too long", MEMORIES, {"text": "a" * 501}, 400, "invalid", "Content too long (max 500 characters)"),
    sending("too many tags", MEMORIES, {"text": "a", "tags": list("abcdef")}, 400, "invalid", "at most 5 tags"),
    sending("importance of 2", MEMORIES, {"text": "a", "importance": 2}, 400, "invalid", "from 0 to 1"),
    sending("not a number", MEMORIES, {"text": "a", "importance": float("nan")}, 400, "invalid", "must be a number"),
    sending("NUL", MEMORIES, {"text": "a\x00b"}, 400, "invalid", "NUL character"),
    sending("half a character", MEMORIES, {"text": "a\ud800"}, 400, "invalid", "half a surrogate pair"),
    sending("half a character in tag", MEMORIES, {"text": "a", "tags": ["\udfff"]}, 400, "invalid", "surrogate"),
    sending("time without zone", MEMORIES, {"text": "a", "created_at": "2026-01-31T12:00:00"}, 400, "invalid", "zone"),
    sending("time as number", MEMORIES, {"text": "a", "created_at": 5}, 422, "unprocessable", "must be a time such as"),
    sending("no such time", MEMORIES, {"text": "a", "expires_at": "2026-02-31T12:00:00Z"}, 422, "unprocessable", "day"),
    sending("first year", MEMORIES, {"text": "a", "created_at": "0001-01-01T00:00:00+14:00"}, 400, "invalid", "years"),
    sending(
        "last year",
        MEMORIES,
        {"text": "a", "kind": "journal", "created_at": "9999-12-31T00:00:00Z"},
        400,
        "invalid",
        "must lie within the years 2 to 9998",
    ),
    sending("supersedes no id", MEMORIES, {"text": "a", "supersedes": "7"}, 400, "invalid", "the id of a memory"),
    sending("supersedes nothing", MEMORIES, {"text": "a", "supersedes": "m-9"}, 404, "not_found", "no such memory"),
    sending("supersedes another's", MEMORIES, {"text": "a", "supersedes": "m-3"}, 404, "not_found", "no such memory"),
    sending("valid in no zone", MEMORIES, {"text": "a", "valid_from": "2026-01-31T12:00:00"}, 400, "invalid", "zone"),
    sending("a secret", MEMORIES, {"text": SECRET}, 400, "secret_rejected", REJECTED),
    sending("a secret in a tag", MEMORIES, {"text": "a", "tags": [SECRET]}, 400, "secret_rejected", REJECTED),
    sending("a secret in an edit", "{ann}/memories/m-1", {"text": SECRET}, 400, "secret_rejected", REJECTED, "PATCH"),
    sending("stale edit", "{ann}/memories/m-1", {"text": "a", "version": 7}, 409, "conflict", "read it again", "PATCH"),
    sending("version as text", "{ann}/memories/m-1", {"version": "1"}, 422, "unprocessable", "version", "PATCH"),
    sending(
        "recall at no time", "{ann}/recall", {"query": "a", "as_of": "noon"}, 422, "unprocessable", "as_of must be"
    ),
    sending("wrong mode", "{ann}/inject", {"message": "a", "mode": "x"}, 400, "invalid", "There is no injection mode"),
    sending("no message", "{ann}/inject", {}, 422, "unprocessable", "The field message is required."),
    sending(
        "nothing to allow", "/api/secrets/allow", {"text": "tea"}, 400, "invalid", "Nothing in this text looks like"
    ),
    sending("blank query", "{ann}/recall", {"query": " "}, 400, "invalid", "The query is blank"),
    sending("recall of 0", "{ann}/recall", {"query": "a", "limit": 0}, 400, "invalid", "from 1 to 100"),
    sending("recall of a wrong kind", "{ann}/recall", {"query": "a", "kinds": ["x"]}, 400, "invalid", "no kind 'x'"),
    sending("wrong agent id", "/api/agents", {"id": "a b"}, 400, "invalid", "An agent id is"),
    sending("blank agent name", "{ann}", {"name": " "}, 400, "invalid", "name cannot be blank", "PATCH"),
    sending("edit of a missing memory", "{ann}/memories/m-9", {"text": "a"}, 404, "not_found", "no such", "PATCH"),
    sending("edit of a missing agent", "/api/agents/nobody", {"name": "a"}, 404, "not_found", "no such agent", "PATCH"),
    Case("not JSON", "POST", MEMORIES, 400, "invalid", "not valid JSON (at character 1", b"{text", JSON),
    Case("not UTF-8", "POST", MEMORIES, 400, "invalid", "cannot be read", b'{"text": "\xff"}', JSON),
    Case("too deep", "POST", MEMORIES, 400, "invalid", "nested too deeply", b"[" * 40_000, JSON),
    sending("deep metadata", "{ann}/details", {"content": "a", "metadata": DEEP}, 400, "invalid", "nested too deeply"),
    sending("deep meta", "/api/audit", EVENT | {"meta": DEEP}, 400, "invalid", "nested too deeply"),
    sending("deep where a text is wanted", "{ann}/recall", {"query": DEEP}, 400, "invalid", "nested too deeply"),
    sending("deep for an agent", "/agent/run", {"prompt": DEEP}, 400, "invalid", "nested too deeply"),
    sending("half a character in output", "{ann}/capture", {"output": "\ud800"}, 400, "invalid", "surrogate"),
    sending("half a character in content", "{ann}/details", {"content": "\ud800"}, 400, "invalid", "surrogate"),
    sending("half a character in meta", "/api/audit", EVENT | {"meta": {"a": "\udc00"}}, 400, "invalid", "surrogate"),
    sending("half a character in a prompt", "/agent/run", {"prompt": "\ud800"}, 400, "invalid", "surrogate"),
    Case("UTF-16", "POST", MEMORIES, 400, "invalid", "in UTF-8", '{"text": "a"}'.encode("utf-16"), JSON),
    Case("a name twice", "POST", MEMORIES, 400, "invalid", "'text' twice", b'{"text": "a", "text": "b"}', JSON),
    Case("a name twice inside", "POST", "/api/audit", 400, "invalid", "'b' twice", TWICE, JSON),
    Case("a name twice for an agent", "POST", "/agent/run", 400, "invalid", "twice", b'{"a":1,"a":1}', JSON),
    Case("a name twice in a document", "POST", "/api/kb/documents", 400, "invalid", "twice", b'{"a":1,"a":1}', JSON),
    Case("endless number", "POST", MEMORIES, 400, "invalid", "cannot be read", b"[" + b"9" * 5000 + b"]", JSON),
    Case("no body", "POST", MEMORIES, 422, "unprocessable", "must be a JSON object", b"", JSON),
    Case("no content type", "POST", MEMORIES, 422, "unprocessable", "Content-Type: application/json", b'{"text": "a"}'),
    Case(
        "a form",
        "POST",
        MEMORIES,
        422,
        "unprocessable",
        "Content-Type: application/json",
        b"text=a",
        {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Case("bad cursor", "GET", "{ann}/memories?cursor=m-7", 400, "invalid", "cursor is not from this listing"),
    Case("bad cursor of agents", "GET", "/api/agents?cursor=%F0", 400, "invalid", "cursor is not from this listing"),
    Case(
        "cursor of another list",
        "GET",
        f"{{ann}}/memories?cursor={foreign_cursor('agents:atlas')}",
        400,
        "invalid",
        "cursor is not from this listing",
    ),
    Case("made up cursor", "GET", f"{{ann}}/memories?cursor={foreign_cursor('memories:x')}", 400, "invalid", "memory"),
    Case(
        "made up cursor of events",
        "GET",
        f"/api/audit?cursor={foreign_cursor('audit:x')}",
        400,
        "invalid",
        "The cursor",
    ),
    Case("huge limit of events", "GET", "/api/audit?limit=501", 400, "invalid", "from 1 to 500"),
    Case("list at no time", "GET", "{ann}/memories?as_of=noon", 422, "unprocessable", "as_of must be a time such as"),
    Case("list in no zone", "GET", "{ann}/memories?as_of=2026-01-31T12:00:00", 400, "invalid", "zone"),
    Case("approve another agent's memory", "POST", "{ann}/memories/m-3/approve", 404, "not_found", "no such memory"),
    Case("similar to another agent's", "GET", "{ann}/memories/m-3/similar", 404, "not_found", "no such memory"),
    Case("a parameter twice", "GET", "{ann}/memories?kind=note&kind=core", 422, "unprocessable", "'kind' was given 2"),
    sending("a field for no body", "/api/maintenance", {"dry_run": True}, 422, "unprocessable", "takes no body"),
    Case("nothing near", "GET", "/favicon.ico", 404, "not_found", "at GET /favicon.ico; the routes are listed at"),
    sending("no list", "/api/kb/search", {"query": "a", "categories": "b"}, 422, "unprocessable", "valid list."),
    sending("no object", "{ann}/details", {"content": "a", "metadata": []}, 422, "unprocessable", "a JSON o"),
    Case("negative limit", "GET", "{ann}/memories?limit=-1", 400, "invalid", "from 1 to 500"),
    Case("negative limit of agents", "GET", "/api/agents?limit=-1", 400, "invalid", "from 1 to 500"),
    Case("huge limit", "GET", "{ann}/memories?limit=501", 400, "invalid", "from 1 to 500"),
    Case("limit as word", "GET", "{ann}/memories?limit=ten", 422, "unprocessable", "limit should be a whole number."),
    Case("wrong state", "GET", "{ann}/memories?state=dead", 400, "invalid", "There is no state 'dead'"),
    Case("wrong kind to list", "GET", "{ann}/memories?kind=x", 400, "invalid", "There is no kind 'x'"),
    Case("NUL in a search", "GET", "{ann}/memories?q=%00", 400, "invalid", "NUL"),
    Case("unknown parameter", "GET", "{ann}/memories?knd=note", 422, "unprocessable", "There is no parameter 'knd'; "),
    Case("unknown agent", "GET", "/api/agents/nobody", 404, "not_found", "There is no such agent."),
    Case("unknown agent to delete", "DELETE", "/api/agents/nobody", 404, "not_found", "There is no such agent."),
    Case("impossible agent", "GET", "/api/agents/a%20b/memories", 400, "invalid", "An agent id is"),
    Case("unknown memory", "GET", "{ann}/memories/m-99", 404, "not_found", "There is no such memory."),
    Case("impossible memory", "GET", "{ann}/memories/m-1%00", 400, "invalid", "NUL character"),
    Case("another agent's memory", "GET", "{ann}/memories/m-3", 404, "not_found", "There is no such memory."),
    Case("another agent's history", "GET", "{ann}/memories/m-3/history", 404, "not_found", "There is no such memory."),
    Case("another agent's memory to delete", "DELETE", "{ann}/memories/m-3", 404, "not_found", "no such memory"),
    Case("memory of nobody", "GET", "/api/agents/nobody/memories/m-1", 404, "not_found", "There is no such memory."),
    Case("unknown route", "GET", "/api/nothing", 404, "not_found", "There is nothing at GET /api/nothing"),
    Case("slash at the end", "GET", "/api/agents/", 404, "not_found", "There is nothing at GET /api/agents/"),
    Case("wrong method", "PUT", "{ann}", 405, "method_not_allowed", "use GET or PATCH or DELETE."),
    Case("foreign Host", "GET", "/health", 403, "forbidden", "that Host name", headers={"Host": "evil.example:8077"}),
    Case("no Host", "GET", "/health", 403, "forbidden", "that Host name", headers={"Host": ""}),
    Case("odd Host", "GET", "/health", 403, "forbidden", "that Host name", headers={"Host": "localhost@evil.example"}),
    Case(
        "foreign Origin",
        "DELETE",
        "{ann}",
        403,
        "forbidden",
        "another origin",
        headers={"Origin": "http://evil.example"},
    ),
    Case("another local page", "DELETE", "{ann}", 403, "forbidden", "origin", headers={"Origin": "http://127.0.0.1:1"}),
    Case("hidden Origin", "DELETE", "{ann}", 403, "forbidden", "another origin", headers={"Origin": "null"}),
]


@pytest.fixture(scope="module")
def agents(client: httpx2.Client) -> dict[str, str]:
    for path, count in (("/api/agents/err-ann", 1), ("/api/agents/err-bob", 3)):
        for _ in range(count):
            client.post(f"{path}/memories", json={"text": "there", "kind": "journal"}).raise_for_status()
    return {"ann": "/api/agents/err-ann", "bob": "/api/agents/err-bob"}


def check_shape(answer: httpx2.Response, status: int, code: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"ok", "error", "code"}
    assert (body["ok"], body["code"]) == (False, code)
    assert says in body["error"]
    assert answer.headers["X-Request-Id"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refused(client: httpx2.Client, agents: dict[str, str], case: Case) -> None:
    path = case.path.replace("{ann}", agents["ann"])
    answer = client.request(case.method, path, content=case.body, headers=case.headers)

    check_shape(answer, case.status, case.code, case.says)
    assert client.get(f"{agents['ann']}/memories").json()["items"][0]["text"] == "there"
    assert len(client.get(f"{agents['bob']}/memories").json()["items"]) == 3
    assert SECRET not in answer.text


def test_a_wrong_method_is_told_the_right_ones(client: httpx2.Client) -> None:
    assert client.put("/api/agents").headers["Allow"] == "GET, POST"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8077"])
def test_our_own_names_are_answered(client: httpx2.Client, host: str) -> None:
    assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("listens_on", "host", "status"),
    [
        ("0.0.0.0", "192.168.1.7:8077", 200),
        ("::", "[fe80::1]:8077", 200),
        ("0.0.0.0", "evil.example", 403),
        ("127.0.0.1", "192.168.1.7:8077", 403),
    ],
)
def test_who_listens_everywhere_is_reached_by_address(
    wellkept: Wellkept, listens_on: str, host: str, status: int
) -> None:
    with serving(wellkept, hosts=[listens_on]) as address, client_of(address) as client:
        assert client.get("/health", headers={"Host": host}).status_code == status


def test_two_hosts_are_one_too_many(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(partial(connection.recv, 4096), b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"more than one Host" in answer


def test_two_files_in_one_form_are_told_so(client: httpx2.Client) -> None:
    files = [("file", (name, b"# A", "text/markdown")) for name in ("a.md", "b.md")]
    answer = client.post("/api/kb/documents", files=files)
    check_shape(answer, 400, "invalid", "The form cannot be read. Too many files.")


@pytest.mark.parametrize("path", ["/health", "/docs", "/openapi.json", "{ann}/memories", "/metrics", "/mcp", "/admin"])
def test_only_pages_of_our_own_may_ask(client: httpx2.Client, address: str, ann: str, path: str) -> None:
    path = path.replace("{ann}", ann)
    own = client.get(path, headers={"Origin": address})
    foreign = client.get(path, headers={"Origin": "http://evil.example"})

    assert own.status_code in (200, 404, 405)
    check_shape(foreign, 403, "forbidden", "another origin")
    assert "Access-Control-Allow-Origin" not in own.headers


def huge(chunk: int = 65536) -> Iterator[bytes]:
    for _ in range(MAX_BODY_BYTES // chunk + 1):
        yield b" " * chunk


def test_a_huge_body_is_refused(client: httpx2.Client) -> None:
    declared = client.post("/api/agents", content=b"".join(huge()), headers=JSON)
    streamed = client.post("/api/agents", content=huge(), headers=JSON)

    for answer in (declared, streamed):
        check_shape(answer, 413, "too_large", "at most 8 MiB")
    assert client.get("/health").status_code == 200


def test_a_body_just_within_the_limit_is_read(client: httpx2.Client) -> None:
    answer = client.post("/api/agents", content=b" " * MAX_BODY_BYTES, headers=JSON)

    check_shape(answer, 400, "invalid", "not valid JSON")


def test_a_second_agent_of_one_id_is_a_conflict(client: httpx2.Client, ann: str) -> None:
    id = ann.rpartition("/")[2]
    assert client.post("/api/agents", json={"id": id}).status_code == 201
    check_shape(client.post("/api/agents", json={"id": id}), 409, "conflict", "already")


def test_a_request_id_is_kept_if_it_is_a_plain_one(client: httpx2.Client) -> None:
    def answered(id: str) -> str:
        return client.get("/health", headers={"X-Request-Id": id}).headers["X-Request-Id"]

    assert answered("abc-123") == "abc-123"
    assert answered("a b") != "a b"
    assert answered("") != answered("")


def test_every_code_has_a_status() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]

    assert {kind.code for kind in kinds if issubclass(kind, errors.WellkeptError)} == set(STATUS)


def test_what_nobody_foresaw_is_logged_and_not_told(wellkept: Wellkept, caplog: pytest.LogCaptureFixture) -> None:
    def break_one(app: FastAPI) -> None:
        def broken() -> None:
            raise RuntimeError("the password is hunter2")

        add_route(app, "/broken", broken)

    with serving(wellkept, break_one) as address, client_of(address) as client, caplog.at_level(logging.ERROR):
        answer = client.get("/broken")
        assert client.get("/health").status_code == 200

    request_id = answer.headers["X-Request-Id"]
    check_shape(answer, 500, "internal", f"the server's log has it under {request_id}.")
    assert "hunter2" not in answer.text
    assert request_id in caplog.text
    assert "hunter2" in caplog.text


def test_a_busy_store_says_when_to_try_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    settings = Settings(url=f"sqlite:///{path}", busy_timeout=0.1)
    with Wellkept(settings=settings) as wellkept, serving(wellkept) as address, client_of(address) as client:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        answer = client.post("/api/agents/ann/memories", json={"text": "x"})
        other.execute("ROLLBACK")
        other.close()

        check_shape(answer, 503, "store_busy", "busy")
        assert answer.headers["Retry-After"] == "1"
        assert client.post("/api/agents/ann/memories", json={"text": "x"}).status_code == 201
