"""The awaited library under many coroutines at once, with some of them cancelled, and after it was closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import pytest

from tests.services.conftest import Clock, Place
from tests.waiting import pass_turn
from wellkept import AsyncWellkept, Settings, StoreError
from wellkept.api.aio import THREADS

CLOSED = "This store is closed; open a new one."
asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")


class Gate:
    """A clock that stops the store's worker threads while it is closed, and tells on whose behalf they asked."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.is_open = threading.Event()
        self.is_open.set()
        self.entered = threading.Semaphore(0)
        self.askers: set[str] = set()

    def __call__(self) -> datetime:
        # Threads of the background have other names; they may go on.
        if threading.current_thread().name.startswith("wellkept_"):
            self.askers.add(asked_by.get())
            if not self.is_open.is_set():
                self.entered.release()
                assert self.is_open.wait(100)
        return self.clock()


@asynccontextmanager
async def opened(place: Place, clock: Callable[[], datetime]) -> AsyncIterator[AsyncWellkept]:
    async with AsyncWellkept(place.url, settings=Settings(pool_size=4, busy_timeout=100), clock=clock) as store:
        yield store


def test_a_hundred_coroutines_remember_and_recall_at_once(fresh_place: Place, clock: Clock) -> None:
    async def use() -> None:
        async with opened(fresh_place, clock) as store:
            memory = store.agent("atlas")
            await memory.remember("Lena leads the billing team")
            written, recalled = [f"Order {number} was shipped" for number in range(100)], "who leads billing?"
            answers = await asyncio.gather(
                *(memory.remember(text, kind="episode") for text in written),
                *(memory.recall(recalled, limit=3) for _ in range(100)),
            )
            assert sorted(int(each.id.removeprefix("m-")) for each in answers[:100]) == list(range(2, 102))
            assert all("m-1" in [hit.id for hit in hits] for hits in answers[100:])
            kept = await memory.list(kind="episode", limit=500)
            assert sorted(each.text for each in kept) == sorted(written)
            assert (await store.tenant().audit.verify()).is_intact

    asyncio.run(use())


def test_what_is_cancelled_before_it_began_never_happens_and_what_began_is_finished(
    fresh_place: Place, clock: Clock
) -> None:
    async def use() -> list[str]:
        gate = Gate(clock)
        async with opened(fresh_place, gate) as store:
            memory = store.agent("atlas")
            gate.is_open.clear()
            begun = [asyncio.create_task(memory.remember(f"begun {number}")) for number in range(THREADS)]
            for _ in range(THREADS):
                await asyncio.to_thread(gate.entered.acquire)
            waiting = [asyncio.create_task(memory.remember(f"waiting {number}")) for number in range(8)]
            await pass_turn()
            for task in (begun[0], *waiting[:7]):
                task.cancel()
            ended = await asyncio.gather(begun[0], *waiting[:7], return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in ended)
            gate.is_open.set()
            await asyncio.gather(*begun[1:], waiting[7])
        async with opened(fresh_place, clock) as again:  # closing has waited for the one nobody awaits
            return [each.text for each in await again.agent("atlas").list(limit=500)]

    assert sorted(asyncio.run(use())) == sorted([*(f"begun {number}" for number in range(THREADS)), "waiting 7"])


def test_a_closed_store_says_so_and_closing_waits_for_what_was_asked(fresh_place: Place, clock: Clock) -> None:
    async def use() -> None:
        gate = Gate(clock)
        async with opened(fresh_place, gate) as store:
            memory, tenant = store.agent("atlas"), store.tenant()
            gate.is_open.clear()
            asked = asyncio.create_task(memory.remember("Asked before it was closed"))
            await asyncio.to_thread(gate.entered.acquire)
            closing = asyncio.create_task(store.close())
            await pass_turn()
            assert not closing.done()
            gate.is_open.set()
            assert (await asked).id == "m-1"
            await closing
            verbs: list[Any] = [memory.recall("anything"), tenant.agents.list(), tenant.audit.list()]
            for verb in (*verbs, store.maintain()):
                with pytest.raises(StoreError, match=CLOSED):
                    await verb
            await store.close()  # a second time, which does nothing; and a third at the end

    asyncio.run(use())


def test_worker_threads_know_on_whose_behalf_they_work(fresh_place: Place, clock: Clock) -> None:
    async def use() -> set[str]:
        gate = Gate(clock)
        async with opened(fresh_place, gate) as store:
            asked_by.set("this request")
            await store.agent("atlas").remember("Prefers tabs")
        return gate.askers

    assert "this request" in asyncio.run(use())
