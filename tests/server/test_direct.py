"""The short way to a route answers to the letter what the framework would."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from operator import mul
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from recollect.api.recollect import Recollect
from recollect.server.app import GROUPS
from recollect.server.direct import Direct, plans
from recollect.server.threads import Threads
from recollect.settings import Settings
from tests.server.live import PATIENCE, client_of, serving

ROUTES = [route for group in GROUPS for route in group.router.routes if isinstance(route, APIRoute)]
BY_THE_FRAMEWORK = {
    "GET /health",  # several shapes of answers
    "GET /metrics",  # and those below: no JSON, or files
    "GET /api/export",
    "POST /api/import",
    "POST /api/kb/documents",
    "POST /agent/run",  # never in a thread
    "POST /agent/vision",
}
LONG = {"text": "The harbour master keeps the blue ledger.", "kind": "note", "tags": ["harbour"], "importance": 0.5}
ASKED: list[tuple[str, str, object]] = [
    ("GET", "/api/agents", None),
    ("GET", "/api/agents?limit=1", None),
    ("GET", "/api/agents?limit=1&limit=2", None),
    ("GET", "/api/agents?limit=", None),
    ("GET", "/api/agents?nothing=1", None),
    ("GET", "/api/agents/{agent}", None),
    ("GET", "/api/agents/nobody", None),
    ("GET", "/api/agents/{agent}/memories?q=LEDGER&limit=5&kind=note", None),
    ("GET", "/api/agents/{agent}/memories?q=%C3%A9&as_of=2026-01-31T12:00:00Z", None),
    ("GET", "/api/agents/{agent}/memories/m-1", None),
    ("GET", "/api/agents/{agent}/memories/m-1%0A", None),
    ("GET", "/api/agents/{agent}/memories/m-77", None),
    ("GET", "/api/agents/not%20one/memories", None),
    ("GET", "/api/agents//memories", None),
    ("HEAD", "/api/agents/{agent}", None),
    ("PUT", "/api/agents/{agent}", None),
    ("GET", "/api/agents/{agent}/memories/m-1/history", None),
    ("GET", "/api/agents/{agent}/private-memory", None),
    ("POST", "/api/agents/{agent}/inject", {"message": "the ledger"}),
    ("POST", "/api/agents/{agent}/recall", {"query": "who keeps the ledger", "sources": ["memory"]}),
    ("POST", "/api/agents/{agent}/recall", {"query": "who", "limit": "5", "as_of": "2026-01-31T12:00:00+01:00"}),
    ("POST", "/api/agents/{agent}/recall", {"query": "who", "limit": 2.0}),
    ("POST", "/api/agents/{agent}/recall", {"query": " "}),
    ("POST", "/api/agents/{agent}/recall", {"quer": "who"}),
    ("POST", "/api/agents/{agent}/recall", ["who"]),
    ("POST", "/api/agents/{agent}/recall", b'{"query": "who'),
    ("POST", "/api/agents/{agent}/recall", b'{"query": "\xff"}'),
    ("POST", "/api/agents/{agent}/recall", '{"query": "ledger"}'.encode("utf-16")),
    ("POST", "/api/agents/not%20one/recall", {"query": "who", "limit": "many"}),
    ("DELETE", "/api/agents/{agent}/memories/m-99", None),
    ("DELETE", "/api/agents/{agent}/memories/m-99?sure=1&sure=2", None),
    ("POST", "/api/agents/{agent}/memories/m-99/approve", {"sure": True}),
    ("GET", "/api/agents/{agent}/memories/m-1", {"unheard": True}),
    ("GET", "/api/agents/{agent}/private-memory?a=1", None),
    ("GET", "/api/audit/verify", None),
    ("GET", "/api/chat/sessions?agent={agent}", None),
    ("GET", "/api/kb/documents", None),
    ("POST", "/api/kb/search", {"query": "ledger"}),
    ("GET", "/api/keys", None),
    ("GET", "/api/skills", None),
]


def without_direct(app: FastAPI) -> None:
    app.user_middleware = [each for each in app.user_middleware if each.cls is not Direct]


@pytest.fixture(scope="module")
def recollect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recollect]:
    """One whose clock stands still: how recent something is is part of an answer."""
    settings = Settings(url=f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}")
    with Recollect(settings=settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as opened:
        yield opened


@pytest.fixture(scope="module")
def both(recollect: Recollect) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    with ExitStack() as stack:
        one = stack.enter_context(client_of(stack.enter_context(serving(recollect))))
        other = stack.enter_context(client_of(stack.enter_context(serving(recollect, without_direct))))
        for text in (LONG["text"], "Élodie knows where the ledger is."):
            one.post("/api/agents/direct/memories", json={**LONG, "text": text}).raise_for_status()
        yield one, other


def told(client: httpx2.Client, method: str, path: str, body: object) -> tuple[int, dict[str, str], bytes]:
    sent: dict[str, Any] = {} if body is None else {"json": body}
    if isinstance(body, bytes):
        sent = {"content": body, "headers": {"Content-Type": "Application/JSON"}}
    answer = client.request(method, path, **sent)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    assert len(answer.headers["x-request-id"]) == 16
    return answer.status_code, headers, answer.content


@pytest.mark.parametrize(("method", "path", "body"), ASKED, ids=[f"{each[0]} {each[1]} {each[2]}" for each in ASKED])
def test_both_ways_answer_the_same(
    both: tuple[httpx2.Client, httpx2.Client], method: str, path: str, body: object
) -> None:
    path = path.replace("{agent}", "direct")
    one, other = (told(client, method, path, body) for client in both)
    assert one == other


def test_both_ways_write_the_same(both: tuple[httpx2.Client, httpx2.Client]) -> None:
    def written(name: str, client: httpx2.Client) -> list[object]:
        path = f"/api/agents/direct-{name}/memories"
        return [
            told(client, "POST", path, LONG),
            told(client, "PATCH", f"{path}/m-1", {"tags": []}),
            told(client, "DELETE", f"{path}/m-1", None),
        ]

    one, other = (written(name, client) for name, client in zip(("one", "other"), both, strict=True))
    assert one == other


def test_nearly_every_route_has_a_short_way() -> None:
    every = {f"{method} {route.path}" for route in ROUTES for method in route.methods or ()}
    assert every - {" ".join(each) for each in plans(ROUTES)} == BY_THE_FRAMEWORK


def test_whose_paths_may_be_anothers_is_left_to_the_framework() -> None:
    app = FastAPI()

    def answer() -> None: ...

    for path in ("/a/{one}", "/a/b", "/c/{rest:path}", "/c/d/e", "/f/g"):
        app.add_api_route(path, answer, status_code=204)
    routes = [route for route in app.routes if isinstance(route, APIRoute)]

    assert set(plans(routes)) == {("GET", "/f/g")}


def test_who_is_cancelled_waits_for_the_end_of_the_work() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE)
        done.set()

    async def cancelled() -> bool:
        task = asyncio.create_task(Threads(most=1).run(work))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        ended, _ = await asyncio.wait([task], timeout=0.05)
        assert not ended
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return done.is_set()

    assert asyncio.run(cancelled())


def test_more_work_than_threads_is_all_done_and_what_it_raises_is_raised() -> None:
    def broken() -> None:
        raise LookupError("gone")

    async def together() -> list[object]:
        threads = Threads(most=3)
        works = [threads.run(partial(mul, number, 2)) for number in range(50)]
        return await asyncio.gather(*works, threads.run(broken), return_exceptions=True)

    *doubled, error = asyncio.run(together())
    assert doubled == [number * 2 for number in range(50)]
    assert isinstance(error, LookupError)


def test_closed_threads_end_when_they_are_done() -> None:
    async def worked() -> threading.Thread:
        threads = Threads(most=2)
        thread = await threads.run(threading.current_thread)
        threads.close()
        return thread

    thread = asyncio.run(worked())
    thread.join(PATIENCE)
    assert not thread.is_alive()
