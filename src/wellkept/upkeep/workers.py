"""Threads for code that may hang, so that the caller can stop waiting for it, and turns for threads that compute.

Unlike those of the standard library's pool, these threads do not hold up the end of the program: an embedder that never
answers must not keep a command from finishing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from wellkept.errors import StoreError

T = TypeVar("T")
Job = tuple[Callable[[], Any], Future[Any]]

MAX_THREADS = 128
"""Maximum number of threads, which are started on demand and kept. Once all of them hang, further jobs wait."""

TURN_SECONDS = 0.1
"""Longest wait for a turn. A slow recall must not hold up the others for longer."""


class Workers:
    """A pool of daemon threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # idle threads less waiting jobs
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread; the future gets its result or what it raises.

        Raises: StoreError once closed, and in a forked child: threads do not survive a fork.
        """
        # Checked without the lock: a thread that did not survive the fork may have held it.
        if os.getpid() != self._pid:
            raise StoreError("This store was opened before a fork; open a new one in the child process.")
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise StoreError("This store is closed; open a new one.")
            if self._free <= 0 and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._serve, name="wellkept-worker", daemon=True).start()
            else:
                self._free -= 1
            self._jobs.put((work, future))
        return future

    def close(self) -> None:
        """Let each thread end after its current job, without waiting for it."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future = job
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
                future.set_exception(error)
            # Do not keep the arguments and the result in memory until the next job.
            del job, work, future
            with self._lock:
                self._free += 1


class Turns:
    """Lets threads compute one after the other, unless one would wait too long.

    Each call of SQLite or NumPy releases Python's lock. With several recalls at once, another thread takes it every
    time, and two processors spend most of their time handing it over.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for the turn, at most `TURN_SECONDS`, and have it inside the block."""
        has_turn = self._lock.acquire(timeout=TURN_SECONDS)
        try:
            yield
        finally:
            if has_turn:
                self._lock.release()
