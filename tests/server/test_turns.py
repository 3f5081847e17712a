"""Requests that read, one after the other: what takes long holds nobody up, and a recall that hangs is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect import Recollect
from recollect.server import threads
from recollect.server.threads import Threads, Turns
from recollect.services.background.lanes import LANE, Abandoned, Lane
from recollect.services.recall import recall
from recollect.settings import Settings
from tests.hanging import Hanging
from tests.server.live import client_of, serving, wait_until

PATIENCE = 60.0


def turns(*, at_once: int = 1) -> Turns:
    return Turns(at_once=at_once, others=Threads(most=4))


def test_so_many_are_under_way_at_a_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "GLANCE", PATIENCE)  # nothing takes long
    both, lock, under_way, most = threading.Barrier(2), threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        both.wait(PATIENCE)  # so that two are certain to be
        with lock:
            under_way -= 1
        return number

    async def together() -> Sequence[int]:
        ours = turns(at_once=2)
        return await asyncio.gather(*(ours.run(partial(work, number)) for number in range(40)))

    assert asyncio.run(together()) == list(range(40))
    assert most == 2


def test_what_takes_long_lets_the_next_begin_and_its_thread_goes_when_it_is_done() -> None:
    may_end = threading.Event()

    def hang() -> str:
        assert may_end.wait(PATIENCE)
        return "at last"

    def broken() -> None:
        raise LookupError("gone")

    async def together() -> tuple[set[threading.Thread], Sequence[str]]:
        ours = turns()
        hanging = [asyncio.create_task(ours.run(hang)) for _ in range(3)]
        passed = {await ours.run(threading.current_thread)}
        with pytest.raises(LookupError):
            await ours.run(broken)
        may_end.set()
        told = await asyncio.gather(*hanging)
        passed |= set(await asyncio.gather(*(ours.run(threading.current_thread) for _ in range(20))))
        ours.close()
        return passed, told

    passed, told = asyncio.run(together())
    assert told == ["at last"] * 3
    for thread in passed:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_work_that_outlives_its_event_loop_does_not_take_the_threads_with_it() -> None:
    ours, may_end, begun = turns(), threading.Event(), threading.Event()
    lost: list[threading.Thread] = []

    def hang() -> None:
        lost.append(threading.current_thread())
        begun.set()
        assert may_end.wait(PATIENCE)

    async def begin() -> None:
        asking = ours.run(hang)
        asking.send(None)  # as a loop does that is closed before the end
        assert begun.wait(PATIENCE)
        asking.close()

    asyncio.run(begin())
    may_end.set()
    lost[0].join(PATIENCE)

    assert asyncio.run(asyncio.wait_for(ours.run(lambda: "answered"), PATIENCE)) == "answered"


def test_only_a_recall_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "GLANCE", 0.005)
    seen, again, begun = threading.Event(), threading.Event(), []

    def work() -> str:
        begun.append(threading.current_thread())
        if len(begun) > 1:
            again.set()
        assert seen.wait(PATIENCE)
        return "done"

    async def slow() -> str:
        task = asyncio.create_task(turns().run(work))
        assert not await asyncio.to_thread(again.wait, 0.1)  # many glances
        seen.set()
        return await task

    assert asyncio.run(slow()) == "done"
    assert len(begun) == 1


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    with Hanging.released() as embedder:
        yield embedder


@pytest.fixture
def recollect(tmp_path: Path, hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recollect]:
    """It waits a moment for its embedder, and for all the rest as long as a busy machine takes."""
    monkeypatch.setattr(recall, "IN_TURN_SHARE", 0.5 / PATIENCE)
    monkeypatch.setattr(recall, "EMBEDDER_SHARE", 0.5 / PATIENCE)
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", recall_deadline=PATIENCE)
    with Recollect(settings=settings, embedder=hanging) as opened:
        opened.agent("ann").remember("The refund was paid")
        yield opened


def test_a_server_answers_a_recall_whose_embedder_hangs_and_everybody_else(
    recollect: Recollect, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(recollect) as address, client_of(address) as client, client_of(address) as other:
        asked = hanging.asked
        hanging.may_answer.clear()

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(client.post, "/api/agents/ann/recall", json={"query": "refund"})
            wait_until(lambda: hanging.asked > asked)
            assert other.get("/api/agents/ann/memories/m-1").json()["text"] == "The refund was paid"
            answer = asking.result().json()

        assert [hit["id"] for hit in answer["hits"] if hit["source"] == "memory"] == ["m-1"]
        assert [each["source"] for each in answer["missing"]] == ["embedder"]
        assert hanging.asked == asked + 1  # what had begun was gone on with
        hanging.may_answer.set()
        monkeypatch.undo()  # an embedder that answers has its time
        assert client.post("/api/agents/ann/recall", json={"query": "refund"}).json()["missing"] == []


def test_who_was_left_hears_of_it_and_marks_nothing(recollect: Recollect, hanging: Hanging) -> None:
    lane: Lane[Any] = Lane()
    ann = recollect.agent("ann")

    def in_lane(work: Callable[[], Any]) -> Any:
        LANE.set(lane)
        return work()

    hanging.may_answer.clear()
    with ThreadPoolExecutor(1) as pool:
        left = pool.submit(copy_context().run, in_lane, lambda: ann.recall("refund", sources=["memory"]))
        assert not lane.leave(after=0.0)
        wait_until(lambda: lane.leave(after=PATIENCE))
        assert not lane.leave(after=PATIENCE)  # once is enough

        hits = copy_context().run(in_lane, lambda: ann.recall("refund", sources=["audit", "memory"]))
        assert [each.source for each in hits.unanswered] == ["embedder"]
        hanging.may_answer.set()
        with pytest.raises(Abandoned):
            left.result(PATIENCE)
