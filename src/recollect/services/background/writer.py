"""Small things that are written a little later, on a thread, so that nobody waits for them.

Each key (an owner, an API key) is written on its own. What fails is kept and goes behind everybody else's; what the
store refuses for its content is given up after a few tries, while a store that is busy, full or away gets it later.

What has gathered is written when the store is closed, and also when a program ends that never closes it: the standard
library lets go of threads then, whatever they still have to do. Only a crash takes the last second with it.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from recollect.errors import ReadOnly, RecollectError, StoreError
from recollect.model import BackgroundStatus

PAUSE = 1.0
"""Seconds between batches: many notes of the same thing become one write."""

MAX_TRIES = 5
"""Writes of one key that may fail for its content before it is given up."""

STORE_FAILURES = 2
"""Keys that may meet a failing store before a round ends: each may have waited for a timeout."""

log = logging.getLogger("recollect")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    """What waits for one key."""

    value: V
    since: float = field(default_factory=time.monotonic)
    tries: int = 0  # that failed for its content
    is_aside: bool = False  # failed last time
    is_early: bool = False  # cannot be written yet, which is no failure


def _worth(entry: _Entry[V]) -> int:
    """Return a number that is smaller for what is sooner given up."""
    return 0 if entry.is_aside else 1 if entry.is_early else 2


class Later(Generic[K, V]):
    """A queue of values by key, and the thread that writes them, started when there first is something."""

    def __init__(
        self,
        write: Callable[[K, V], bool | None],
        *,
        merge: Callable[[V, V], V],
        name: str,
        failed: str,
        size: Callable[[V], int] = lambda value: 1,
        max_size: int = 10_000,
    ) -> None:
        """`write` stores the value of one key; False: not yet. `merge` joins an older value with a newer one. Beyond
        `max_size`, as `size` measures values, the keys that wait longest are given up. `failed` begins log lines."""
        self.name = name
        self._write = write
        self._merge = merge
        self._failed = failed
        self._size = size
        self._max_size = max_size
        self._pid = os.getpid()
        self._lock = threading.Lock()  # guards the two below
        self._waiting: dict[K, _Entry[V]] = {}
        self._in_hand: dict[K, _Entry[V]] = {}
        self._writing = threading.Lock()
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = ""  # the failure that was last logged
        self._last_error = ""
        self._failures = 0
        self._given_up = 0
        self._success_at: float | None = None

    def add(self, key: K, value: V) -> None:
        """Have a value written soon; return at once. While closing, it is written without delay."""
        with self._lock:
            self._join({key: _Entry(value)})
            is_too_long = len(self._waiting) > self._max_size
        self._wake()
        if is_too_long:
            self._shorten()

    def peek(self, key: K) -> V | None:
        """Return what waits for a key, also while it is being written."""
        with self._lock:
            found = [each[key].value for each in (self._in_hand, self._waiting) if key in each]
        return None if not found else found[0] if len(found) == 1 else self._merge(*found)

    def forget(self, is_wanted: Callable[[K], bool]) -> None:
        """Drop what waits for some keys."""
        # What another thread has in hand may come back.
        with self._writing, self._lock:
            self._waiting = {key: entry for key, entry in self._waiting.items() if not is_wanted(key)}

    def flush(self, is_wanted: Callable[[K], bool] = lambda key: True) -> StoreError | None:
        """Write what waits, for all keys or some, and return the error of a store that failed.

        Whatever goes wrong is logged, counted and kept for the next round: no caller pays for somebody else's values.
        """
        # Whoever asks also waits for what another thread is about to write.
        with self._writing:
            with self._lock:
                self._in_hand = {key: entry for key, entry in self._waiting.items() if is_wanted(key)}
                self._waiting = {key: entry for key, entry in self._waiting.items() if key not in self._in_hand}
            untried, kept = dict(self._in_hand), dict[K, _Entry[V]]()
            errors: list[StoreError] = []
            try:
                while untried and len(errors) < STORE_FAILURES:
                    key, entry = next(iter(untried.items()))
                    left, error = self._tried(key, entry)
                    del untried[key]
                    kept.update({} if left is None else {key: left})
                    errors += [error] if isinstance(error, StoreError) else []
            finally:
                with self._lock:
                    newer, self._waiting, self._in_hand = self._waiting, untried, {}
                    self._join(newer)
                    self._join(kept)
                    if not any(entry.is_aside for entry in self._waiting.values()):
                        self._told = self._last_error = ""
                self._shorten()
            return errors[-1] if errors else None

    def close(self) -> None:
        """Stop the thread and write what waits, unless the store can only be read.

        Raises: StoreError.
        """
        atexit.unregister(self._leave)
        self._stop()
        error = self.flush()
        if error is not None and not isinstance(error, ReadOnly):
            raise error

    def status(self) -> BackgroundStatus:
        """Return the state of the queue; restart a thread that died."""
        with self._lock:
            entries = [*self._in_hand.values(), *self._waiting.values()]
            due = [entry for entry in entries if not entry.is_early]
            if due and not self._closed.is_set():
                self._start()
        now = time.monotonic()
        return BackgroundStatus(
            name=self.name,
            is_running=self._thread is None or self._thread.is_alive() or self._closed.is_set(),
            waiting=len(entries),
            oldest_seconds=max((now - entry.since for entry in due), default=0.0),
            set_aside=sum(entry.is_aside for entry in entries),
            failures=self._failures,
            given_up=self._given_up,
            last_error=self._last_error,
            idle_seconds=None if self._success_at is None else now - self._success_at,
        )

    def _join(self, newer: dict[K, _Entry[V]]) -> None:
        """Put entries behind those that wait. The lock must be held."""
        for key, entry in newer.items():
            older = self._waiting.pop(key, None)
            if older is not None:
                is_first_older = older.since <= entry.since
                values = (older.value, entry.value) if is_first_older else (entry.value, older.value)
                entry = replace(older if is_first_older else entry, value=self._merge(*values), is_early=False)
            self._waiting[key] = entry

    def _shorten(self) -> None:
        """Give up what has waited longest while there is too much: first of what failed, then of what is early."""
        with self._lock:
            total = sum(self._size(entry.value) for entry in self._waiting.values())
            if total <= self._max_size:
                return
            for key in sorted(self._waiting, key=lambda key: _worth(self._waiting[key])):
                total -= self._size(self._waiting.pop(key).value)
                self._given_up += 1
                if total <= self._max_size:
                    return

    def _tried(self, key: K, entry: _Entry[V]) -> tuple[_Entry[V] | None, Exception | None]:
        """Write one value; return what is left of it to be written, and what went wrong."""
        try:
            is_written = self._write(key, entry.value) is not False
        except StoreError as error:
            self._note(error, "")
            return replace(entry, is_aside=True), error
        except Exception as error:  # noqa: BLE001  whatever is wrong with one value must not stop the others
            tries = entry.tries + 1
            is_hopeless = tries >= MAX_TRIES or self._closed.is_set()
            self._given_up += is_hopeless
            self._note(error, f"; given up after {tries} tries, for {key}" if is_hopeless else "")
            return None if is_hopeless else replace(entry, tries=tries, is_aside=True), error
        if not is_written:
            return replace(entry, is_early=True, is_aside=False), None
        self._success_at = time.monotonic()
        return None, None

    def _note(self, error: Exception, more: str) -> None:
        """Count a failure, and log it unless it is the one that was last logged."""
        self._failures += 1
        # The words of an error that is not ours may quote somebody's text.
        reason = str(error) if isinstance(error, RecollectError) else f"a fault of recollect ({type(error).__name__})"
        self._last_error = reason
        if more or reason != self._told:
            self._told = reason
            log.warning("%s: %s%s", self._failed, reason, more)

    def _wake(self) -> None:
        with self._lock:
            is_closed = self._closed.is_set()
            if not is_closed:
                self._start()
        self._wanted.set()
        if is_closed:
            self.flush()

    def _start(self) -> None:
        """Start the thread, also in place of one that died. The lock must be held; a forked child has no thread."""
        if (self._thread is not None and self._thread.is_alive()) or os.getpid() != self._pid:
            return
        if self._thread is None:
            atexit.register(self._leave)
        else:
            log.error("%s: the thread ended unexpectedly and is started again.", self._failed)
            self._wanted.set()
        self._thread = threading.Thread(target=self._serve, name=f"recollect-{self.name}", daemon=True)
        self._thread.start()

    def _leave(self) -> None:
        # A forked child has neither the thread nor what it was to write.
        if os.getpid() == self._pid:
            self._stop()
            self.flush()

    def _stop(self) -> None:
        with self._lock:
            self._closed.set()
            self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while self._wanted.wait() and not self._closed.wait(PAUSE):
            self._wanted.clear()
            # Whoever closed since just now wanted what has been cleared.
            if self._closed.is_set():
                return
            self.flush()
            with self._lock:
                is_due = any(not entry.is_early for entry in self._waiting.values())
            if is_due:
                self._wanted.set()
