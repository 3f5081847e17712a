"""Threads that run the blocking work of requests.

`anyio.to_thread` costs each request as much as a small route takes. These threads are daemons: they end with the
program, whatever they are doing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
THREADS: ContextVar[Threads] = ContextVar("THREADS")
"""Threads of the application that answers the current request."""


SMALL_BODY = 64 * 1024
"""Bytes. Reading a body up to this size takes less time than handing it to another thread."""


class Threads:
    """A pool of at most `most` threads, started when needed, for the requests of one event loop."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._count = 0
        # Idle threads less waiting jobs. Only the event loop's thread touches it.
        self._free = 0
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns or raises. A cancelled caller still waits for the end: it may be a write."""
        job = _Job(work, self._current_loop())
        self._begin(job)
        try:
            await job.ended
        except asyncio.CancelledError:
            if not job.is_done:
                job.ended = job.loop.create_future()
                await job.ended
            raise
        return job.outcome()

    async def attempt(self, work: Callable[[], T], *, within: float) -> T:
        """Return what `work` returns within `within` seconds; after that, leave its thread to it.

        Raises: TimeoutError, at once when every thread is busy.
        """
        job = _Job(work, self._current_loop())
        if self._free <= 0 and self._count >= self._most:
            raise TimeoutError
        self._begin(job)
        await asyncio.wait([job.ended], timeout=within)
        if not job.is_done:
            raise TimeoutError
        return job.outcome()

    def close(self) -> None:
        """Let each thread end after its current job. Further work starts new threads."""
        jobs, count = self._jobs, self._count
        self._jobs, self._count, self._free = SimpleQueue(), 0, 0
        for _ in range(count):
            jobs.put(None)

    def _current_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        # Threads whose event loop was closed have ended, and were not counted out.
        if loop is not self._loop:
            self.close()
            self._loop = loop
        return loop

    def _begin(self, job: _Job[Any]) -> None:
        if self._free <= 0 and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, args=(self._jobs,), name="wellkept-request", daemon=True).start()
        else:
            self._free -= 1
        self._jobs.put(job)

    def _serve(self, jobs: SimpleQueue[_Job[Any] | None]) -> None:
        while (job := jobs.get()) is not None:
            job.run()
            try:
                job.loop.call_soon_threadsafe(self._end, job, jobs)
            except RuntimeError:
                # The event loop is closed, so nothing waits for this.
                return
            # Do not keep a request and its answer until the next one comes.
            del job

    def _end(self, job: _Job[Any], jobs: object) -> None:
        # After `close` the thread is about to end.
        self._free += jobs is self._jobs
        job.is_done = True
        if not job.ended.done():
            job.ended.set_result(None)


class BodyReader(Threads):
    """One thread that counts, parses and checks large bodies.

    This keeps the interpreter busy, so several at once would delay all other requests and finish no sooner.
    """

    def __init__(self) -> None:
        super().__init__(most=1)

    async def read(self, body: bytes, work: Callable[[], T]) -> T:
        """Return or raise what `work` does with `body`; in the thread if the body is large."""
        return work() if len(body) <= SMALL_BODY else await self.run(work)


class _Job(Generic[T]):
    """The work of one request, and its outcome."""

    __slots__ = ("context", "ended", "error", "is_done", "loop", "result", "work")

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.context: Context = copy_context()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None
        self.is_done = False

    def run(self) -> None:
        try:
            self.result = self.context.run(self.work)
        except BaseException as error:  # noqa: BLE001  raised again by `outcome`
            self.error = error

    def outcome(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                # Its traceback refers to this job.
                self.error = None
        return self.result  # type: ignore[return-value]
