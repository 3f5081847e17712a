"""Background writer: small values are written shortly later, on a thread, so that no caller waits.

Each key (an owner, an API key) is written separately. A value that fails is kept and moves to the end of the queue. If
the store refuses it for its content, it is dropped after a few tries; if the store is busy, full or unreachable, it is
retried.

Queued values are also written when the store is closed, and at exit by a program that never closes it, because daemon
threads stop at exit without finishing their work. Only a crash loses the last second.
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

from wellkept.errors import ReadOnly, StoreError, WellkeptError
from wellkept.model import BackgroundStatus

PAUSE = 1.0
"""Seconds between batches, so that many values of the same key become one write."""

MAX_TRIES = 5
"""Number of times a value may fail for its content before it is dropped."""

STORE_FAILURES = 2
"""Number of keys that may fail in the store before a round ends; each may have waited for a timeout."""

log = logging.getLogger("wellkept")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    """Queued value of one key."""

    value: V
    since: float = field(default_factory=time.monotonic)
    tries: int = 0  # failures for its content
    is_aside: bool = False  # the last write failed
    is_early: bool = False  # cannot be written yet, which is no failure


def _drop_order(entry: _Entry[V]) -> int:
    """Return a sort key: entries with a smaller number are dropped first."""
    return 0 if entry.is_aside else 1 if entry.is_early else 2


class BackgroundWriter(Generic[K, V]):
    """Queue of values by key, and the thread that writes them. The first value starts the thread."""

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
        """Set up the queue; the thread is not started yet.

        `write` stores the value of one key and returns False if it cannot be written yet. `merge` joins an older value
        with a newer one. While the sum of `size` over all values exceeds `max_size`, values are dropped: those that
        failed first, then those that cannot be written yet, then the oldest. `failed` starts every log line.
        """
        self.name = name
        self._write = write
        self._merge = merge
        self._failed = failed
        self._size = size
        self._max_size = max_size
        self._pid = os.getpid()
        # Guards `_waiting` and `_in_hand`.
        self._lock = threading.Lock()
        self._waiting: dict[K, _Entry[V]] = {}
        self._in_hand: dict[K, _Entry[V]] = {}
        self._writing = threading.Lock()
        self._wakeup = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        # The last logged failure, so that a repeated one is logged once.
        self._logged = ""
        self._last_error = ""
        self._failures = 0
        self._given_up = 0
        self._success_at: float | None = None

    def add(self, key: K, value: V) -> None:
        """Queue a value and return at once. After `close`, write it immediately."""
        with self._lock:
            self._enqueue({key: _Entry(value)})
            # Counting keys is cheap; `flush` compares the sum of their sizes.
            is_too_long = len(self._waiting) > self._max_size
        self._wake()
        if is_too_long:
            self._drop_excess()

    def peek(self, key: K) -> V | None:
        """Return the queued value of a key, also while it is being written."""
        with self._lock:
            found = [each[key].value for each in (self._in_hand, self._waiting) if key in each]
        return None if not found else found[0] if len(found) == 1 else self._merge(*found)

    def forget(self, matches: Callable[[K], bool]) -> None:
        """Drop the queued values of the keys for which `matches` returns True."""
        # Wait for a running flush: a value it fails to write would return to the queue.
        with self._writing, self._lock:
            self._waiting = {key: entry for key, entry in self._waiting.items() if not matches(key)}

    def flush(self, matches: Callable[[K], bool] = lambda key: True) -> StoreError | None:
        """Write the queued values of all keys, or of those that match, and return the last error of the store.

        Failures are logged, counted and kept for the next round instead of raised: they may concern other callers'
        values.
        """
        # The lock also makes the caller wait for values that another thread is writing.
        with self._writing:
            with self._lock:
                self._in_hand = {key: entry for key, entry in self._waiting.items() if matches(key)}
                self._waiting = {key: entry for key, entry in self._waiting.items() if key not in self._in_hand}
            untried, kept = dict(self._in_hand), dict[K, _Entry[V]]()
            errors: list[StoreError] = []
            try:
                while untried and len(errors) < STORE_FAILURES:
                    key, entry = next(iter(untried.items()))
                    left, error = self._write_entry(key, entry)
                    del untried[key]
                    kept.update({} if left is None else {key: left})
                    errors += [error] if isinstance(error, StoreError) else []
            finally:
                with self._lock:
                    newer, self._waiting, self._in_hand = self._waiting, untried, {}
                    self._enqueue(newer)
                    self._enqueue(kept)
                    if not any(entry.is_aside for entry in self._waiting.values()):
                        self._logged = self._last_error = ""
                self._drop_excess()
            return errors[-1] if errors else None

    def close(self) -> None:
        """Stop the thread and write the queued values, unless the store is read-only. Raises: StoreError."""
        atexit.unregister(self._flush_at_exit)
        self._stop()
        error = self.flush()
        if error is not None and not isinstance(error, ReadOnly):
            raise error

    def status(self) -> BackgroundStatus:
        """Return the state of the queue; restart the thread if it died."""
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

    def _enqueue(self, newer: dict[K, _Entry[V]]) -> None:
        """Append entries to the queue, merged with those of the same key. The lock must be held."""
        for key, entry in newer.items():
            older = self._waiting.pop(key, None)
            if older is not None:
                is_first_older = older.since <= entry.since
                values = (older.value, entry.value) if is_first_older else (entry.value, older.value)
                entry = replace(older if is_first_older else entry, value=self._merge(*values), is_early=False)
            self._waiting[key] = entry

    def _drop_excess(self) -> None:
        """Drop the oldest entries while the queue is too large: failed ones first, then early ones."""
        with self._lock:
            total = sum(self._size(entry.value) for entry in self._waiting.values())
            if total <= self._max_size:
                return
            for key in sorted(self._waiting, key=lambda key: _drop_order(self._waiting[key])):
                total -= self._size(self._waiting.pop(key).value)
                self._given_up += 1
                if total <= self._max_size:
                    return

    def _write_entry(self, key: K, entry: _Entry[V]) -> tuple[_Entry[V] | None, Exception | None]:
        """Write one value; return the entry to keep, if any, and the error."""
        try:
            is_written = self._write(key, entry.value) is not False
        except StoreError as error:
            self._log_failure(error, "")
            return replace(entry, is_aside=True), error
        except Exception as error:  # noqa: BLE001  a fault in one value must not stop the others
            tries = entry.tries + 1
            is_hopeless = tries >= MAX_TRIES or self._closed.is_set()
            self._given_up += is_hopeless
            self._log_failure(error, f"; given up after {tries} tries, for {key}" if is_hopeless else "")
            return None if is_hopeless else replace(entry, tries=tries, is_aside=True), error
        if not is_written:
            return replace(entry, is_early=True, is_aside=False), None
        self._success_at = time.monotonic()
        return None, None

    def _log_failure(self, error: Exception, more: str) -> None:
        """Count a failure, and log it unless it repeats the last one."""
        self._failures += 1
        # The message of a foreign error may quote a user's text, so only its type is logged.
        reason = str(error) if isinstance(error, WellkeptError) else f"a fault of wellkept ({type(error).__name__})"
        self._last_error = reason
        if more or reason != self._logged:
            self._logged = reason
            log.warning("%s: %s%s", self._failed, reason, more)

    def _wake(self) -> None:
        with self._lock:
            is_closed = self._closed.is_set()
            if not is_closed:
                self._start()
        self._wakeup.set()
        if is_closed:
            self.flush()

    def _start(self) -> None:
        """Start the thread, also in place of one that died. The lock must be held; a forked child has no thread."""
        if (self._thread is not None and self._thread.is_alive()) or os.getpid() != self._pid:
            return
        if self._thread is None:
            atexit.register(self._flush_at_exit)
        else:
            log.error("%s: the thread ended unexpectedly and is started again.", self._failed)
            self._wakeup.set()
        self._thread = threading.Thread(target=self._run, name=f"wellkept-{self.name}", daemon=True)
        self._thread.start()

    def _flush_at_exit(self) -> None:
        # A forked child has no thread, and its copy of the queue belongs to the parent.
        if os.getpid() == self._pid:
            self._stop()
            self.flush()

    def _stop(self) -> None:
        with self._lock:
            self._closed.set()
            self._wakeup.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._wakeup.wait() and not self._closed.wait(PAUSE):
            self._wakeup.clear()
            # `close` may have set the event between the wait and the clear.
            if self._closed.is_set():
                return
            self.flush()
            with self._lock:
                is_due = any(not entry.is_early for entry in self._waiting.values())
            if is_due:
                self._wakeup.set()
