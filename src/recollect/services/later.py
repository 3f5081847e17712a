"""Small things that are written down a little later, on a thread, so that nobody waits for them.

What has gathered is written when the store is closed, and also when a program ends that never closes it: the standard
library lets go of threads then, whatever they still have to do. Only a crash takes the last second with it.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable

from recollect.errors import ReadOnly, RecollectError

PAUSE = 1.0
"""Seconds between batches: many notes of the same thing become one write."""

log = logging.getLogger("recollect")


class Later:
    """A thread that writes down what gathers elsewhere, made when there first is something."""

    def __init__(self, write: Callable[[], None], *, name: str, failed: str) -> None:
        """`write` writes all that has gathered, and keeps for the next time what it fails to; `failed` says what was
        not done then."""
        self._write = write
        self._name = name
        self._failed = failed
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = ""  # why it last failed

    def wake(self) -> None:
        """Say that something has gathered; returns at once. Who comes when all is closing writes it without delay."""
        with self._lock:
            is_closed = self._closed.is_set()
            if self._thread is None and not is_closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
                atexit.register(self._leave)
        self._wanted.set()
        if is_closed:
            self._try()

    def close(self) -> None:
        """Stop, with everything written, unless the store only lets itself be read.

        Raises: StoreError.
        """
        atexit.unregister(self._leave)
        self._stop()
        self.write()

    def write(self) -> None:
        """Write it down now, unless the store only lets itself be read.

        Raises: StoreError.
        """
        try:
            self._write()
        except ReadOnly as error:
            self._tell(error)

    def _leave(self) -> None:
        if os.getpid() == self._pid:  # a forked child has neither the thread nor what it was to write
            self._stop()
            self._try()

    def _stop(self) -> None:
        with self._lock:
            self._closed.set()
            self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while self._wanted.wait() and not self._closed.wait(PAUSE):
            self._wanted.clear()
            if self._closed.is_set():  # since just now, and who closed it wanted what has been cleared
                return
            if not self._try():
                self._wanted.set()  # once more after the next pause

    def _try(self) -> bool:
        try:
            self._write()
        except RecollectError as error:
            self._tell(error)
            return False
        self._told = ""
        return True

    def _tell(self, error: RecollectError) -> None:
        """Once, for as long as the reason stays the same."""
        if str(error) != self._told:
            self._told = str(error)
            log.warning("%s: %s", self._failed, error)
