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

from recollect.services.workers import do

T = TypeVar("T")


class Threads:
    """At most so many threads, made as they are needed, for the requests of one event loop."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._count = 0
        self._free = 0  # threads that wait, less jobs that wait for them; only the event loop's thread counts
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Who is cancelled meanwhile still waits for its end: it may be a write."""
        job = _Job(work, asyncio.get_running_loop())
        if self._free <= 0 and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, args=(self._jobs,), name="recollect-request", daemon=True).start()
        else:
            self._free -= 1
        self._jobs.put(job)
        try:
            await job.ended
        except asyncio.CancelledError:
            if not job.is_done:
                job.ended = job.loop.create_future()
                await job.ended
            raise
        if job.error is not None:
            try:
                raise job.error
            finally:
                job.error = None  # its traceback holds the job
        return job.result  # type: ignore[return-value]

    def close(self) -> None:
        """Let the threads end when they are done; more work makes new ones."""
        jobs, count = self._jobs, self._count
        self._jobs, self._count, self._free = SimpleQueue(), 0, 0
        for _ in range(count):
            jobs.put(None)

    def _serve(self, jobs: SimpleQueue[_Job[Any] | None]) -> None:
        while (job := jobs.get()) is not None:
            do(partial(job.context.run, job.work), job)
            try:
                job.loop.call_soon_threadsafe(self._end, job, jobs)
            except RuntimeError:  # the server has stopped, and nobody waits
                return
            del job  # what was asked and answered is not kept until the next request

    def _end(self, job: _Job[Any], jobs: object) -> None:
        self._free += jobs is self._jobs  # else its thread is about to end
        job.is_done = True
        if not job.ended.done():
            job.ended.set_result(None)


class _Job(Generic[T]):
    """One piece of work, and where its outcome is left."""

    __slots__ = ("context", "ended", "error", "is_done", "loop", "result", "work")

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.context: Context = copy_context()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None
        self.is_done = False

    def set_result(self, result: T) -> None:
        self.result = result

    def set_exception(self, error: BaseException) -> None:
        self.error = error
