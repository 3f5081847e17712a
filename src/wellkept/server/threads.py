"""Threads that run the blocking work of requests.

`anyio.to_thread` costs each request as much as a small route takes. These threads are daemons: they end with the
program, whatever they are doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TypeVar

T = TypeVar("T")

SMALL_BODY = 64 * 1024
"""Bytes. Reading a body up to this size takes less time than handing it to another thread."""


class Threads:
    """A pool of at most `most` threads, started when needed."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._count = 0
        self._idle = Semaphore(0)
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns or raises. A cancelled caller still waits for the end: it may be a write."""
        ended = self._begin(work)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await asyncio.wait([ended])
            raise

    async def attempt(self, work: Callable[[], T], *, within: float) -> T:
        """Return what `work` returns within `within` seconds; after that, leave its thread to it.

        Raises: TimeoutError.
        """
        return await asyncio.wait_for(asyncio.shield(self._begin(work)), within)

    def close(self) -> None:
        """Let each thread end after its current job. Further work starts new threads."""
        jobs, count = self._jobs, self._count
        self._jobs, self._count, self._idle = SimpleQueue(), 0, Semaphore(0)
        for _ in range(count):
            jobs.put(None)

    def _begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            serve = partial(_serve, self._jobs, self._idle)
            Thread(target=serve, name="wellkept-request", daemon=True).start()
        self._jobs.put(partial(copy_context().run, _run, work, ended))
        return ended


class BodyReader(Threads):
    """One thread that counts, parses and checks large bodies.

    This keeps the interpreter busy, so several at once would delay all other requests and finish no sooner.
    """

    def __init__(self) -> None:
        super().__init__(most=1)

    async def read(self, body: bytes, work: Callable[[], T]) -> T:
        """Return or raise what `work` does with `body`; in the thread if the body is large."""
        return work() if len(body) <= SMALL_BODY else await self.run(work)


def _serve(jobs: SimpleQueue[Callable[[], None] | None], idle: Semaphore) -> None:
    while (job := jobs.get()) is not None:
        job()
        # Do not keep a request and its answer until the next one comes.
        del job
        idle.release()


def _run(work: Callable[[], T], ended: asyncio.Future[T]) -> None:
    """Do the work, and hand what it returns or raises to the event loop that waits for it."""
    tell: Callable[[], None]
    try:
        tell = partial(ended.set_result, work())
    except BaseException as error:  # noqa: BLE001  raised again where the future is awaited
        tell = partial(ended.set_exception, error)
    # The event loop may be closed by then, so nothing waits for this.
    with suppress(RuntimeError):
        ended.get_loop().call_soon_threadsafe(_tell, ended, tell)


def _tell(ended: asyncio.Future[T], tell: Callable[[], None]) -> None:
    if not ended.done():
        tell()
