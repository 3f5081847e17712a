"""The threads of the server's requests: one request that hangs holds up no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.hanging import Hanging
from tests.server.live import PATIENCE, client_of, serving, wait_until
from wellkept import Wellkept
from wellkept.recall import recall
from wellkept.server.threads import Threads
from wellkept.settings import Settings


def test_no_more_jobs_run_at_once_than_there_are_threads() -> None:
    both, lock, under_way, most = threading.Barrier(2), threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        both.wait(PATIENCE)  # so that two are certain to run
        with lock:
            under_way -= 1
        return number

    async def together() -> Sequence[int]:
        threads = Threads(most=2)
        return await asyncio.gather(*(threads.run(partial(work, number)) for number in range(40)))

    assert asyncio.run(together()) == list(range(40))
    assert most == 2


def test_work_that_outlives_its_event_loop_does_not_take_the_threads_with_it() -> None:
    threads, may_end, begun = Threads(most=1), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        assert may_end.wait(PATIENCE)

    async def begin() -> None:
        running = threads.run(hang)
        running.send(None)  # as a loop does that is closed before the end
        assert begun.wait(PATIENCE)
        running.close()

    asyncio.run(begin())
    may_end.set()

    assert asyncio.run(asyncio.wait_for(threads.run(lambda: "answered"), PATIENCE)) == "answered"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    with Hanging.released() as embedder:
        yield embedder


@pytest.fixture
def wellkept(tmp_path: Path, hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wellkept]:
    """A store that waits half a second for its embedder, and for all the rest as long as a busy machine takes."""
    monkeypatch.setattr(recall, "EMBEDDER_SHARE", 0.5 / PATIENCE)
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", recall_deadline=PATIENCE)
    with Wellkept(settings=settings, embedder=hanging) as opened:
        opened.agent("ann").remember("The refund was paid")
        opened.embedding.embed_waiting()  # so that only recall asks the embedder later
        yield opened


def test_a_server_answers_a_recall_whose_embedder_hangs_and_everybody_else(
    wellkept: Wellkept, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(wellkept) as address, client_of(address) as client, client_of(address) as other:
        asked = hanging.asked
        hanging.may_answer.clear()

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(client.post, "/api/agents/ann/recall", json={"query": "refund"})
            wait_until(lambda: hanging.asked > asked)
            assert other.get("/api/agents/ann/memories/m-1").json()["text"] == "The refund was paid"
            answer = asking.result().json()

        assert [hit["id"] for hit in answer["hits"] if hit["source"] == "memory"] == ["m-1"]
        assert [each["source"] for each in answer["missing"]] == ["embedder"]
        assert hanging.asked <= asked + 2  # by the recall, and by the server that warms it up
        hanging.may_answer.set()
        monkeypatch.undo()  # an embedder that answers has its time
        assert client.post("/api/agents/ann/recall", json={"query": "refund"}).json()["missing"] == []
