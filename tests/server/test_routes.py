"""JSON routes: requests are checked strictly, and refusals say what is wrong."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from operator import mul
from typing import Any

import httpx2
import pytest

from tests.server.live import PATIENCE
from wellkept.server.threads import Threads

NO_OBJECT = "The body must be a JSON object, sent with the header Content-Type: application/json."
NOT_JSON = "The body cannot be read; send valid JSON in UTF-8."
REFUSED: list[tuple[str, str, object, int, str]] = [
    ("GET", "/api/agents?limit=1&limit=2", None, 422, "The parameter 'limit' was given 2 times; give it once."),
    ("GET", "/api/agents?limit=", None, 422, "limit should be a whole number."),
    ("GET", "/api/agents?nothing=1", None, 422, "There is no parameter 'nothing'; there are: limit, cursor."),
    ("GET", "/api/agents/not%20one/memories?limit=x", None, 400, "An agent id is"),
    ("POST", "{ann}/recall", None, 422, NO_OBJECT),
    ("POST", "{ann}/recall", ["who"], 422, NO_OBJECT),
    ("POST", "{ann}/recall", b"null", 422, NO_OBJECT),
    ("POST", "{ann}/recall", {}, 422, "The field query is required."),
    ("POST", "{ann}/recall", {"query": "who", "limit": "5"}, 422, "limit should be a whole number."),
    ("POST", "{ann}/recall", {"quer": "who"}, 422, "There is no field 'quer'; there are: query,"),
    ("POST", "{ann}/recall", b'{"query": "who', 400, "The body is not valid JSON (at character 10: "),
    ("POST", "{ann}/recall", b'{"query": "\xff"}', 400, NOT_JSON),
    ("POST", "{ann}/recall", '{"query": "ledger"}'.encode("utf-16"), 400, NOT_JSON),
    ("POST", "{ann}/recall", b'{"query": "' + b"y" * 70_000, 400, "The body is not valid JSON (at character 10: "),
    ("POST", "{ann}/recall", {"quer": "y" * 70_000}, 422, "There is no field 'quer'; there are: query,"),
    ("POST", "/api/agents/not%20one/recall", {"quer": "who"}, 400, "An agent id is"),
    ("POST", "/api/agents/not%20one/recall", b"{", 400, "The body is not valid JSON (at character 1: "),
    ("DELETE", "{ann}/memories/m-99?sure=1&sure=2", None, 422, "The parameter 'sure' was given 2 times"),
    ("DELETE", "{ann}/memories/m-99", {"sure": True}, 422, "There is no field 'sure': this route takes no body."),
    ("POST", "{ann}/memories/m-99/approve", b"{", 400, "The body is not valid JSON (at character 1"),
    ("POST", "{ann}/memories?nothing=1", {"text": "a"}, 422, "There is no parameter 'nothing': this route takes none."),
    ("GET", "{ann}/private-memory?nothing=1", None, 422, "There is no parameter 'nothing': this route takes none."),
    ("POST", "{ann}/memories/m-99/approve", b"", 404, "no such"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "says"), REFUSED, ids=lambda each: str(each)[:60])
def test_a_refusal_says_what_is_wrong(
    client: httpx2.Client, ann: str, method: str, path: str, body: object, status: int, says: str
) -> None:
    sent: dict[str, Any] = {} if body is None else {"json": body}
    if isinstance(body, bytes):
        sent = {"content": body, "headers": {"Content-Type": "Application/JSON"}}
    answer = client.request(method, path.replace("{ann}", ann), **sent)

    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_must_be_said_to_be_json(client: httpx2.Client, ann: str, kind: str) -> None:
    answer = client.post(f"{ann}/recall", content=b'{"query": "who"}', headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]) == (422, NO_OBJECT)


def test_head_is_answered_as_get_without_the_body(client: httpx2.Client, ann: str) -> None:
    client.post(f"{ann}/memories", json={"text": "The harbour master keeps the blue ledger."})
    head, get = client.head(f"{ann}/memories/m-1"), client.get(f"{ann}/memories/m-1")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))


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
