"""Work that may take too long, done beside the caller, who does not have to wait for the end of it.

Unlike those of the standard library's pool, these threads do not hold up the end of the program: a source that never
answers must not keep a command from finishing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from recollect.errors import StoreError

T = TypeVar("T")

MAX_THREADS = 128
"""Made as they are needed, and kept. So many may be slow at once before others have to wait for them."""


class Workers:
    """Threads that run one thing after the other."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # threads that wait, less jobs that wait for them
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work`; its result, or what it raises, is in the future.

        Raises: StoreError once closed, and in a child that was forked: threads stay behind.
        """
        if os.getpid() != self._pid:
            raise StoreError("This store was opened before a fork; open a new one in the child process.")
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise StoreError("This store is closed; open a new one.")
            if self._free <= 0 and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._serve, name="recollect-worker", daemon=True).start()
            else:
                self._free -= 1
            self._jobs.put((future, work))
        return future

    def close(self) -> None:
        """Let the threads end when they are done; nobody waits for them."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            del job
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
                future.set_exception(error)
            del future, work  # what was asked and answered is not kept until the next question
            with self._lock:
                self._free += 1
