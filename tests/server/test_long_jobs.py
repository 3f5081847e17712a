"""Long requests of one tenant wait for each other, and for nobody else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from tests.server.live import PATIENCE, add_route, client_of, serving, wait_until
from wellkept.api.wellkept import Wellkept
from wellkept.server.http import routing
from wellkept.settings import Settings


class Waiting:
    """A server with a route that takes as long as a test likes."""

    def __init__(self, wellkept: Wellkept, queue: str | None) -> None:
        self.wellkept = wellkept
        self.queue = queue
        self.begun: list[str] = []
        self.may_end = threading.Event()
        self.address = ""
        self.app: FastAPI

    def add_route(self, app: FastAPI) -> None:
        def wait(name: str) -> dict[str, bool]:
            self.begun.append(name)
            return {"ok": self.may_end.wait(PATIENCE)}

        add_route(app, "/api/waiting", wait, queue=self.queue)
        self.app = app

    def key_of(self, tenant: str) -> str:
        return self.wellkept.tenant(tenant).keys.create("admin").key

    def ask(self, key: str, name: str, *, method: str = "GET", body: bytes | None = None) -> httpx2.Response:
        with client_of(self.address, key) as client:
            return client.request(method, "/api/waiting", params={"name": name}, content=body)

    def under_way(self) -> float:
        return self.app.state.metrics.registry.get_sample_value("wellkept_requests_under_way") or 0.0


@contextlib.contextmanager
def waiting(queue: str | None = None, **settings: Any) -> Iterator[Waiting]:
    with Wellkept(":memory:", settings=Settings(embedder="off", **settings)) as wellkept:
        server = Waiting(wellkept, queue)
        with serving(wellkept, server.add_route, no_auth=False) as server.address:
            try:
                yield server
            finally:
                server.may_end.set()


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("GET", b"{}"), ("HEAD", None)])
def test_long_requests_of_a_tenant_run_one_after_the_other(method: str, body: bytes | None) -> None:
    with waiting("documents") as server, ThreadPoolExecutor() as threads:
        key = server.key_of("acme")
        first = threads.submit(server.ask, key, "first")
        wait_until(lambda: server.begun == ["first"])
        second = threads.submit(server.ask, key, "second", method=method, body=body)
        wait_until(lambda: server.under_way() == 2)
        other = threads.submit(server.ask, server.key_of("other"), "other")
        wait_until(lambda: server.begun == ["first", "other"])
        server.may_end.set()

        assert [each.result().status_code for each in (first, second, other)] == [200] * 3
        assert server.begun == ["first", "other", "second"]


def test_too_many_long_requests_of_a_tenant_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "MAX_WAITING", 1)
    with waiting("documents") as server, ThreadPoolExecutor() as threads:
        key = server.key_of("acme")
        first = threads.submit(server.ask, key, "first")
        wait_until(lambda: server.begun == ["first"])
        refused = server.ask(key, "second")
        server.may_end.set()

        assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (
            429,
            "rate_limited",
            "5",
        )
        assert refused.json()["error"].endswith("try again when some are done.")
        assert first.result().status_code == 200
        assert server.ask(key, "third").status_code == 200


def test_slow_requests_of_a_tenant_leave_threads_to_others() -> None:
    """Its share of the requests is more than the threads a framework has by default."""
    with waiting(max_requests=100) as server, ThreadPoolExecutor(max_workers=75) as threads:
        key = server.key_of("acme")
        slow = [threads.submit(server.ask, key, "slow") for _ in range(75)]
        wait_until(lambda: server.under_way() == 75)
        with client_of(server.address, server.key_of("other")) as other:
            assert other.post("/api/agents/ann/memories", json={"text": "Likes tea"}).status_code == 201
            assert other.get("/api/export").status_code == 200
        server.may_end.set()

        assert {each.result().status_code for each in slow} == {200}
