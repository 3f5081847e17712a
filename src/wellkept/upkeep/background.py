"""Work in the background: jobs that run when they are due, and queues of small values that are written shortly later.

Each job has a thread of its own, started by its first work, so that a job that hangs in a model or on a disk holds up
no other. All follow one rule: a run that failed is repeated after a second, and after twice as long each time it fails
again, up to a minute.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from wellkept.errors import ReadOnly, StoreError, WellkeptError
from wellkept.model import BackgroundStatus

FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0
"""Seconds after the first failed run, and after many in a row, until the next one."""

PAUSE = 1.0
"""Seconds for which a queue waits, so that many values of the same key become one write."""

MAX_TRIES = 5
"""Number of times a value may fail for its content before it is dropped."""

STORE_FAILURES = 2
"""Number of keys that may fail in the store before a round ends; each may have waited for a timeout."""

log = logging.getLogger("wellkept")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Job:
    """A function that runs in the background whenever it is due."""

    def __init__(self, name: str, run: Callable[[], float | None], *, failed: str) -> None:
        """Set up; nothing runs before `wake`.

        `run` returns the seconds until it is due again, or None: when it is woken. `failed` starts every log line.
        """
        self.name = name
        self.is_closed = False
        # Empty after a run that succeeded.
        self.last_error = ""
        self._run = run
        self._failed = failed
        self._pid = os.getpid()
        # Guards the fields below; notified when one of them changes.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due_at = math.inf
        # After a failure: how long the job pauses, and until when.
        self._pause = self._paused_until = 0.0
        self._begun = self._ended = 0
        self._failures = 0
        self._success_at: float | None = None

    @property
    def is_due(self) -> bool:
        """True if a run is to come, also while one is under way."""
        return self._due_at < math.inf

    def wake(self, after: float = 0.0, *, now: bool = False) -> None:
        """Have it run in so many seconds, or earlier if it is due by then; `now` ends the pause after a failure."""
        # A forked child has no thread, and a lock may be held for ever by one of its parent.
        if os.getpid() != self._pid:
            return
        with self._changed:
            if self.is_closed:
                return
            self._paused_until = 0.0 if now else self._paused_until
            due_at = max(time.monotonic() + after, self._paused_until)
            if due_at >= self._due_at:
                return
            self._due_at = due_at
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"wellkept-{self.name}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def run_soon(self, patience: float) -> bool:
        """Have it run once from the beginning, without a pause, and wait for the end; return False if it hangs.

        It does if nothing is noted for `patience` seconds.
        """
        with self._changed:
            awaited = self._begun + 1
            self.wake(now=True)
            while self._ended < awaited and self._changed.wait(patience):
                pass
            return self._ended >= awaited

    def note_progress(self) -> None:
        """Tell those who wait that a part of the work is done."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, is_reached: Callable[[], bool], seconds: float) -> None:
        """Wait until progress makes something true, at most so many seconds."""
        with self._changed:
            self._changed.wait_for(is_reached, seconds)

    def fail(self, error: BaseException, more: str = "") -> None:
        """Count a failure, and log it unless it repeats the last one."""
        self._failures += 1
        # The message of a foreign error may quote a user's text, so only its type is logged.
        reason = str(error) if isinstance(error, WellkeptError) else f"a fault ({type(error).__name__})"
        is_known, self.last_error = reason == self.last_error, reason
        if more or not is_known:
            log.warning("%s: %s%s", self._failed, reason, more)

    def status(self, *, waiting: int, oldest_seconds: float, set_aside: int = 0, given_up: int = 0) -> BackgroundStatus:
        """Return the state of the job, with the counts of its queue."""
        return BackgroundStatus(
            name=self.name,
            is_running=self._thread is None or self._thread.is_alive() or self.is_closed,
            waiting=waiting,
            oldest_seconds=oldest_seconds,
            set_aside=set_aside,
            failures=self._failures,
            given_up=given_up,
            last_error=self.last_error,
            idle_seconds=None if self._success_at is None else time.monotonic() - self._success_at,
        )

    def close(self, patience: float | None = None) -> None:
        """Begin no more runs, and wait for the one under way, at most so many seconds."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience)

    def _work(self) -> None:
        while self._wait_until_due():
            failures, again = self._failures, None
            try:
                again = self._run()
            except BaseException as error:  # noqa: BLE001  if the thread ended, nothing would be done any more
                if not self.is_closed:
                    self.fail(error)
            with self._changed:
                if self._failures > failures:
                    again = self._pause = min(2 * self._pause or FIRST_RETRY, LONGEST_RETRY)
                    self._paused_until = time.monotonic() + again
                    self._due_at = math.inf
                else:
                    self._pause = self._paused_until = 0.0
                    self.last_error, self._success_at = "", time.monotonic()
                if again is not None:
                    self._due_at = min(self._due_at, time.monotonic() + again)
                self._ended = self._begun
                self._changed.notify_all()

    def _wait_until_due(self) -> bool:
        """Wait, and begin a run; return False once closed."""
        with self._changed:
            while not self.is_closed and (left := self._due_at - time.monotonic()) > 0:
                self._changed.wait(None if left == math.inf else left)
            self._due_at = math.inf
            self._begun += 1
            return not self.is_closed


@dataclass(slots=True)
class _Entry(Generic[V]):
    """Queued value of one key."""

    value: V
    since: float = field(default_factory=time.monotonic)
    tries: int = 0  # failures for its content
    is_aside: bool = False  # the last write failed
    is_early: bool = False  # cannot be written yet, which is no failure


class Queue(Generic[K, V]):
    """Values by key that are written a moment later, so that no caller waits.

    Each key (an owner, an API key) is written separately, and one that failed comes after all others. If the store
    refuses a value for its content, it is dropped after a few tries; if the store is busy, full or unreachable, it is
    retried. What is queued is also written when the store is closed, and at exit by a program that never closes it.
    Only a crash loses the last second.
    """

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
        """Set up an empty queue.

        `write` stores the value of one key and returns False if it cannot be written yet. `merge` joins an older value
        with a newer one. While the sum of `size` over all values exceeds `max_size`, values are dropped: those that
        failed first, then the oldest. `failed` starts every log line.
        """
        self._write = write
        self._merge = merge
        self._size = size
        self._max_size = max_size
        self._pid = os.getpid()
        self._job = Job(name, self._run, failed=failed)
        # Guards `_waiting` and `_in_hand`.
        self._lock = threading.Lock()
        self._waiting: dict[K, _Entry[V]] = {}
        self._in_hand: dict[K, _Entry[V]] = {}
        self._writing = threading.Lock()
        self._is_registered = False
        self._given_up = 0

    def add(self, key: K, value: V) -> None:
        """Queue a value and return at once. After `close`, write it immediately."""
        with self._lock:
            self._enqueue(key, _Entry(value))
            # Counting keys is cheap; `flush` compares the sum of their sizes.
            if len(self._waiting) > self._max_size:
                self._drop_excess()
            if not self._is_registered:
                self._is_registered = True
                atexit.register(self._flush_at_exit)
        if self._job.is_closed:
            self.flush()
        else:
            self._job.wake(PAUSE)

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
        errors: list[StoreError] = []
        # The lock also makes the caller wait for values that another thread is writing.
        with self._writing:
            with self._lock:
                left = {key: entry for key, entry in self._waiting.items() if matches(key)}
                self._waiting = {key: entry for key, entry in self._waiting.items() if key not in left}
                self._in_hand = dict(left)
            try:
                for key in sorted(left, key=lambda each: left[each].is_aside):
                    if len(errors) < STORE_FAILURES and (error := self._write_entry(key, left)) is not None:
                        errors.append(error)
            finally:
                with self._lock:
                    newer, self._waiting, self._in_hand = self._waiting, left, {}
                    for key, entry in newer.items():
                        self._enqueue(key, entry)
                    self._drop_excess()
        return errors[-1] if errors else None

    def close(self) -> None:
        """Stop the thread and write the queued values, unless the store is read-only. Raises: StoreError."""
        atexit.unregister(self._flush_at_exit)
        self._job.close()
        error = self.flush()
        if error is not None and not isinstance(error, ReadOnly):
            raise error

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        with self._lock:
            entries = [*self._in_hand.values(), *self._waiting.values()]
        now = time.monotonic()
        return self._job.status(
            waiting=len(entries),
            oldest_seconds=max((now - entry.since for entry in entries if not entry.is_early), default=0.0),
            set_aside=sum(entry.is_aside for entry in entries),
            given_up=self._given_up,
        )

    def _run(self) -> float | None:
        self.flush()
        with self._lock:
            return PAUSE if any(not entry.is_early for entry in self._waiting.values()) else None

    def _enqueue(self, key: K, entry: _Entry[V]) -> None:
        """Append an entry to the queue, merged with that of the same key. The lock must be held."""
        older = self._waiting.pop(key, None)
        if older is not None:
            entry = replace(older, value=self._merge(older.value, entry.value), is_early=False)
        self._waiting[key] = entry

    def _drop_excess(self) -> None:
        """Drop entries while the queue is too large: failed ones first, then the oldest. The lock must be held."""
        total = sum(self._size(entry.value) for entry in self._waiting.values())
        for key in sorted(self._waiting, key=lambda each: not self._waiting[each].is_aside):
            if total <= self._max_size:
                return
            total -= self._size(self._waiting.pop(key).value)
            self._given_up += 1

    def _write_entry(self, key: K, left: dict[K, _Entry[V]]) -> StoreError | None:
        """Write one value, and take it out of what is left unless it is to be tried again; return the store's error."""
        entry = left[key]
        try:
            is_written = self._write(key, entry.value) is not False
        except StoreError as error:
            left[key] = replace(entry, is_aside=True)
            self._job.fail(error)
            return error
        except Exception as error:  # noqa: BLE001  a fault in one value must not stop the others
            tries = entry.tries + 1
            left[key] = replace(entry, tries=tries, is_aside=True)
            is_hopeless = tries >= MAX_TRIES or self._job.is_closed
            if is_hopeless:
                del left[key]
                self._given_up += 1
            self._job.fail(error, f"; given up after {tries} tries, for {key}" if is_hopeless else "")
            return None
        if is_written:
            del left[key]
        else:
            left[key] = replace(entry, is_early=True, is_aside=False)
        return None

    def _flush_at_exit(self) -> None:
        # A forked child has no thread, and its copy of the queue belongs to the parent.
        if os.getpid() == self._pid:
            self._job.close()
            self.flush()


T = TypeVar("T")

MAX_THREADS = 128
"""Maximum number of threads, which are started on demand and kept. Once all of them hang, further jobs wait."""

TURN_SECONDS = 0.1
"""Longest wait for a turn. A slow recall must not hold up the others for longer."""


class Workers:
    """Daemon threads for code that may hang, so that the caller can stop waiting for it.

    Unlike those of the standard library's pool, they do not hold up the end of the program: an embedder that never
    answers must not keep a command from finishing.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
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
