"""Authentication: every route takes the key it says, the tenant is the key's, and foreign is answered like missing."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from tests.server.live import PATIENCE, add_route, client_of, serving, wait_until
from tests.server.routes import SCOPES
from wellkept.access.rules_keys import is_allowed
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.server.http.routing import Route, RouteTable
from wellkept.settings import Settings

SETTINGS = {"tenant": "settings"}
VALUES = {
    "agent": "ann",
    "id": "m-1",
    "key": "mem_20260101000000_abcd",
    "session": "s-1",
    "document": "d-1",
    "number": "1",
}
HARMLESS: dict[str, Any] = {}
"""A body that every route refuses (422) or, having none, ignores."""


@dataclass(frozen=True)
class Door:
    """A server with keys, and a key of each scope for two tenants."""

    address: str
    keys: dict[tuple[str, KeyScope], str]

    def client(self, tenant: str, scope: KeyScope = KeyScope.ADMIN) -> Any:
        return client_of(self.address, self.keys[tenant, scope])


def forgotten_route(app: FastAPI) -> None:
    """A route somebody added without a word about keys."""
    app.add_api_route("/api/forgotten", lambda: {"ok": True}, methods=["GET"])


BEGUN, GO_ON = threading.Event(), threading.Event()


def waiting_route(app: FastAPI) -> None:
    """A route that takes as long as a test likes."""

    def wait() -> dict[str, bool]:
        BEGUN.set()
        return {"ok": GO_ON.wait(PATIENCE)}

    GO_ON.clear()
    add_route(app, "/api/waiting", wait)


@pytest.fixture(scope="module")
def door(opened: Wellkept) -> Iterator[Door]:
    keys = {
        (tenant, scope): opened.tenant(tenant).keys.create(scope).key
        for tenant in ("acme", "other", "settings")
        for scope in KeyScope
    }
    with serving(opened, forgotten_route, no_auth=False) as address:
        yield Door(address, keys)


def sent(client: httpx2.Client, route: str, values: dict[str, str] = VALUES) -> httpx2.Response:
    method, _, path = route.partition(" ")
    path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: values.get(match[1], "x"), path)
    return client.request(method, path, json=HARMLESS if method in ("POST", "PATCH", "PUT") else None)


@pytest.mark.parametrize("route", SCOPES)
def test_without_a_key_only_public_routes_answer(door: Door, route: str) -> None:
    with client_of(door.address) as client:
        answer = sent(client, route)

    if SCOPES[route] is None:
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.json()["error"]


@pytest.mark.parametrize("route", [route for route, scope in SCOPES.items() if scope is not None])
def test_a_key_opens_what_its_scope_allows(door: Door, route: str) -> None:
    needed = SCOPES[route]
    assert needed is not None
    for scope in KeyScope:
        with door.client("settings", scope) as client:
            answer = sent(client, route)
        assert (answer.status_code == 403) == (not is_allowed(scope, needed)), (scope, answer.text)
        if answer.status_code == 403:
            said = answer.json()
            assert said["code"] == "forbidden"
            assert f"the scope {scope.value}; this route requires the scope {needed.value}" in said["error"]
        assert answer.status_code < 500


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Basic YTpi",
        "Bearer hunter2",
        "{key}",
        "Basic {key}",
        "Bearer {key}x",
        "Bearer {key} x",
    ],
)
def test_other_headers_open_nothing(door: Door, header: str) -> None:
    key = door.keys["acme", KeyScope.ADMIN]
    with client_of(door.address) as client:
        answer = client.get("/api/agents", headers={"Authorization": header.replace("{key}", key)})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert key not in answer.text


def test_a_key_in_the_address_opens_nothing(door: Door) -> None:
    """It would end up in logs."""
    with client_of(door.address) as client:
        assert client.get("/api/agents", params={"key": door.keys["acme", KeyScope.ADMIN]}).status_code == 401


def test_the_scheme_may_be_written_in_any_case(door: Door) -> None:
    with client_of(door.address) as client:
        answer = client.get("/api/agents", headers={"Authorization": f"bearer {door.keys['acme', KeyScope.READ]}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/api/forgotten", "/api/agents\n", "/api/keys%0A"])
def test_a_route_that_is_in_no_table_takes_an_admin_key(door: Door, path: str) -> None:
    with door.client("acme", KeyScope.WRITE) as writer, client_of(door.address) as nobody:
        answers = [client.get(path.replace("\n", "%0A")).status_code for client in (nobody, writer)]

    assert answers[0] == 401
    assert answers[1] in (403, 404)


def test_nobody_reaches_the_forgotten_route(door: Door) -> None:
    with door.client("acme") as client:
        assert client.get("/api/forgotten").status_code == 404


def test_what_is_not_there_is_not_found_and_wrong_methods_are_told_the_right_ones(door: Door) -> None:
    with door.client("acme", KeyScope.READ) as client:
        missing, wrong = client.get("/api/nothing"), client.put("/api/agents")

    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert wrong.headers["Allow"] == "GET, POST"


def test_the_table_finds_the_route_of_a_request() -> None:
    one, other = Route("GET", "/a/{b}", KeyScope.READ), Route("GET", "/a/{b}/c", KeyScope.ADMIN)
    table = RouteTable([one, other])

    assert (table.find("GET", "/a/x"), table.find("GET", "/a/x/c")) == (one, other)
    assert table.find("GET", "/a/") is table.find("POST", "/a/x") is table.find("GET", "/a//c") is None


def test_health_says_little_to_strangers_and_all_to_others(door: Door) -> None:
    with client_of(door.address) as stranger, client_of(door.address, "wrong") as liar:
        assert stranger.get("/health").json() == liar.get("/health").json() == {"status": "ok"}
    with door.client("acme", KeyScope.READ) as client:
        body = client.get("/health").json()
        assert set(body) == {"status", "version", "engine", "embedder", "problems", "maintenance"}
        assert body["maintenance"]["counts"] is None  # they are about all tenants


def test_the_tenant_is_the_keys_whatever_else_is_said(door: Door, opened: Wellkept) -> None:
    with door.client("acme", KeyScope.WRITE) as client:
        path = "/api/agents/mine/memories"
        assert client.post(path, json={"text": "a"}, headers={"X-Tenant": "other"}).status_code == 201
        for extra in ({"tenant": "other"}, {"tenant_id": "other"}, {"owner": {"tenant": "other"}}):
            assert client.post(path, json={"text": "b", **extra}).status_code == 422
        assert client.get(path, params={"tenant": "other"}).status_code == 422

    assert [each.text for each in opened.agent("mine", "acme").list()] == ["a"]
    for tenant in ("other", "settings"):
        assert "mine" not in [agent.id for agent in opened.tenant(tenant).agents.list()]


# --- whose


def events(opened: Wellkept) -> list[object]:
    return [opened.tenant(tenant).audit.list(limit=500) for tenant in ("acme", "other")]


def test_an_admin_cannot_see_or_revoke_the_keys_of_others(door: Door, opened: Wellkept) -> None:
    their_id = opened.tenant("acme").keys.list()[0].id
    with door.client("other") as client:
        listed = {key["id"] for key in client.get("/api/keys").json()["items"]}
        foreign, missing = client.delete(f"/api/keys/{their_id}"), client.delete("/api/keys/aaaaaaaa")

    assert their_id not in listed
    assert (foreign.status_code, foreign.json()) == (missing.status_code, missing.json())
    assert foreign.status_code == 404


def test_maintenance_takes_an_operators_key(door: Door, opened: Wellkept) -> None:
    for tenant in ("acme", "other", "upkeep"):
        opened.agent("worker", tenant).remember("x", kind="episode")
    before = events(opened)

    with client_of(door.address, opened.tenant("upkeep").keys.create("admin").key) as client:
        refused = client.post("/api/maintenance")

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "wellkept admin keys create --scope operator" in refused.json()["error"]
    assert events(opened) == before
    with client_of(door.address, opened.tenant("upkeep").keys.create("operator").key) as client:
        assert client.post("/api/maintenance").json()["agents"] >= 3


# --- keys over REST


def test_a_key_is_made_used_and_revoked_over_rest(door: Door) -> None:
    with door.client("acme") as admin:
        made = admin.post("/api/keys", json={"scope": "read", "name": "for a test"})
        id, key = made.json()["id"], made.json()["key"]
        with client_of(door.address, key) as reader:
            assert (made.status_code, reader.get("/api/agents").status_code) == (201, 200)
            assert admin.delete(f"/api/keys/{id}").status_code == 204
            assert reader.get("/api/agents").status_code == 401
        listed = admin.get("/api/keys").text

    assert id in listed
    assert key not in listed
    assert key.rpartition("_")[2] not in listed


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 422, "The field scope is required."),
        ({"scope": "root"}, 400, "There is no scope 'root'"),
        ({"scope": "read", "tenant": "other"}, 422, "There is no field 'tenant'"),
        ({"scope": "read", "expires_at": "2020-01-01T00:00:00Z"}, 400, "must lie in the future"),
        ({"scope": "read", "name": "x" * 101}, 400, "at most 100"),
    ],
)
def test_keys_that_cannot_be_made(door: Door, body: dict[str, Any], status: int, says: str) -> None:
    with door.client("acme") as admin:
        answer = admin.post("/api/keys", json=body)

    assert answer.status_code == status
    assert says in answer.json()["error"]


def test_the_document_says_which_scope_a_route_takes(door: Door) -> None:
    with client_of(door.address) as client:
        document = client.get("/openapi.json").json()

    said = {f"{m.upper()} {path}": op["x-scope"] for path, ops in document["paths"].items() for m, op in ops.items()}
    assert said == {
        route: "none" if (scope := SCOPES.get(route, KeyScope.ADMIN)) is None else scope.value for route in said
    }
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


# --- too much at once


def test_a_key_that_asks_too_often_is_slowed_down_and_others_are_not(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", embedder="off", rate_limit=0.0001, rate_burst=3)
    with Wellkept(settings=settings) as wellkept:
        fast, calm = (wellkept.tenant(tenant).keys.create("read").key for tenant in ("acme", "other"))
        with serving(wellkept, no_auth=False) as address, client_of(address, fast) as client:
            answers = [client.get("/api/agents") for _ in range(5)]
            assert client.get("/health").status_code == 200
            with client_of(address, calm) as other:
                assert other.get("/api/agents").status_code == 200

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["code"] == "rate_limited"
    assert 9000 <= int(answers[-1].headers["Retry-After"]) <= 10_000


def test_a_busy_server_still_says_that_it_is_well(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", embedder="off", max_requests=1)
    with (
        Wellkept(settings=settings) as wellkept,
        serving(wellkept, waiting_route) as address,
        client_of(address) as client,
        ThreadPoolExecutor() as threads,
    ):
        BEGUN.clear()
        slow = threads.submit(httpx2.get, f"{address}/api/waiting", timeout=PATIENCE)
        assert BEGUN.wait(PATIENCE)
        try:
            refused = client.get("/api/agents")
            assert refused.status_code == 503
            assert (refused.json()["code"], refused.headers["Retry-After"]) == ("overloaded", "1")
            assert client.get("/health").status_code == 200
        finally:
            GO_ON.set()
        assert slow.result().status_code == 200
        wait_until(lambda: client.get("/api/agents").status_code == 200)
