"""Work of a request that may wait for the disk, done beside the event loop.

The framework's own way costs each request as much as a small route takes. These threads end with the program, whatever
they are doing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from recollect.services.background.lanes import LANE, Lane
from recollect.services.background.workers import do

T = TypeVar("T")

GLANCE = 0.02
"""Seconds between two looks at work that is under way."""

SLOW = 2
"""How often work is seen under way before the next may begin."""

SMALL_BODY = 64 * 1024
"""Bytes of a body that is read faster than it is handed to another thread."""


class Threads:
    """At most so many threads, made as they are needed, for the requests of one event loop."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._count = 0
        self._free = 0  # threads that wait, less jobs that wait for them; only the event loop's thread counts
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Who is cancelled meanwhile still waits for its end: it may be a write."""
        job = _Job(work, self._current_loop())
        await self._done(job)
        return job.outcome()

    async def attempt(self, work: Callable[[], T], *, within: float) -> T:
        """Return what `work` returns, if that is soon; otherwise its thread goes on without us.

        Raises: TimeoutError, at once when every thread is still busy with what was too slow before.
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
        """Let the threads end when they are done; more work makes new ones."""
        jobs, count = self._jobs, self._count
        self._jobs, self._count, self._free = SimpleQueue(), 0, 0
        for _ in range(count):
            jobs.put(None)

    def _current_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # threads that found the one before closed have ended without a word
            self.close()
            self._loop = loop
        return loop

    def _begin(self, job: _Job[Any]) -> None:
        if self._free <= 0 and self._count < self._most:
            self._add_thread()
        else:
            self._free -= 1
        self._jobs.put(job)

    async def _done(self, job: _Job[Any]) -> None:
        self._begin(job)
        try:
            await job.ended
        except asyncio.CancelledError:
            if not job.is_done:
                job.ended = job.loop.create_future()
                await job.ended
            raise

    def _add_thread(self) -> None:
        self._count += 1
        threading.Thread(target=self._serve, args=(self._jobs,), name="recollect-request", daemon=True).start()

    def _serve(self, jobs: SimpleQueue[_Job[Any] | None]) -> None:
        while (job := jobs.get()) is not None:
            job.is_begun = True
            do(partial(job.context.run, job.work), job)
            try:
                job.loop.call_soon_threadsafe(self._end, job, jobs)
            except RuntimeError:  # the server has stopped, and nobody waits
                return
            del job  # what was asked and answered is not kept until the next request

    def _end(self, job: _Job[Any], jobs: object) -> None:
        self._free += jobs is self._jobs  # else its thread is about to end
        job.is_done = True
        job.tell()


class BodyReader(Threads):
    """One thread that counts, parses and checks large bodies.

    That keeps the interpreter busy, so several at once would hold up everybody else and be no sooner done.
    """

    def __init__(self) -> None:
        super().__init__(most=1)

    async def read(self, body: bytes, work: Callable[[], T]) -> T:
        """Return or raise what `work` does with `body`; in the thread if the body is large."""
        return work() if len(body) <= SMALL_BODY else await self.run(work)


class Turns(Threads):
    """Threads for work that mostly computes: more of it at once than there is room for takes longer, not less.

    Work that takes long lets the next begin. A recall among it that hangs is done again by one of the `others`, which
    goes on with what was begun (see `recollect.services.background.lanes`).
    """

    def __init__(self, *, at_once: int, others: Threads) -> None:
        super().__init__(most=at_once)
        self._at_once = at_once
        self._others = others
        self._watched: dict[_Job[Any], Lane[Any]] = {}
        self._clock: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[], T]) -> T:
        lane: Lane[Any] = Lane()
        job = _Job(partial(_in_lane, lane, work), self._current_loop())
        self._watched[job] = lane
        if self._clock is None:
            self._clock = job.loop.call_later(GLANCE, self._glance, job.loop)
        await self._done(job)
        return await self._others.run(job.work) if job.is_left else job.outcome()

    def close(self) -> None:
        super().close()
        self._most = self._at_once
        self._watched = {}
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _glance(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at what is under way; one clock for all of it, since nearly all is done before it strikes."""
        for job, lane in self._watched.items():
            if not job.is_begun:
                continue
            job.glances += 1
            if job.glances == SLOW:
                self._most += 1
                if self._free < 0:
                    self._free += 1
                    self._add_thread()
            if lane.leave(after=job.glances * GLANCE):
                job.is_left = True
                job.tell()
        self._clock = loop.call_later(GLANCE, self._glance, loop) if self._watched else None

    def _end(self, job: _Job[Any], jobs: object) -> None:
        super()._end(job, jobs)
        self._watched.pop(job, None)
        if job.glances < SLOW or jobs is not self._jobs:
            return
        self._most -= 1
        if self._count > self._most:  # one thread for each that took long was added
            self._count -= 1
            self._free -= 1
            self._jobs.put(None)


def _in_lane(lane: Lane[Any], work: Callable[[], T]) -> T:
    LANE.set(lane)
    return work()


class _Job(Generic[T]):
    """One piece of work, and where its outcome is left."""

    __slots__ = ("context", "ended", "error", "glances", "is_begun", "is_done", "is_left", "loop", "result", "work")

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.context: Context = copy_context()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None
        self.is_begun = False
        self.is_done = False
        self.is_left = False
        self.glances = 0

    def outcome(self) -> T:
        """What the work returned or raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # its traceback holds the job
        return self.result  # type: ignore[return-value]

    def tell(self) -> None:
        """Wake whoever waits."""
        if not self.ended.done():
            self.ended.set_result(None)

    def set_result(self, result: T) -> None:
        self.result = result

    def set_exception(self, error: BaseException) -> None:
        self.error = error
