"""Deadlines for requests, and cancellation when the client has disconnected.

The server sets a deadline for each request, and long loops call `check_deadline`. It raises only where stopping is
safe: between transactions, or inside one that is then rolled back. Programs that use the library directly have no
deadline unless they set one.

`limit_reads` bounds the time the database may take for some reads. The drivers enforce it: PostgreSQL by its statement
timeout, SQLite by a progress handler.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

from wellkept.errors import Cancelled, StoreTimeout, TimedOut

T = TypeVar("T")

READ_TIMED_OUT = "The database did not answer in time. Try again."


class Deadline:
    """Time limit of one request. Any thread may cancel it; the working thread notices at its next check."""

    __slots__ = ("_is_cancelled", "_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_cancelled = False
        self.restart()

    def restart(self) -> None:
        """Restart the full time limit now."""
        self._until = monotonic() + self._seconds

    def cancel(self) -> None:
        """Make the next check raise `Cancelled`."""
        self._is_cancelled = True

    def check(self) -> None:
        """Stop if the deadline passed or was cancelled. Raises: Cancelled, TimedOut."""
        if self._is_cancelled:
            raise Cancelled("The client has gone, so the work was stopped.")
        if monotonic() >= self._until:
            raise TimedOut(
                f"This took longer than {self._seconds:g} seconds, so it was stopped. "
                "Ask for less at a time, or send it in smaller pieces."
            )


DEADLINE: ContextVar[Deadline | None] = ContextVar("DEADLINE", default=None)
"""Deadline of the current request."""


def check_deadline() -> None:
    """Stop if the current request exceeded its deadline or was cancelled. Raises: Cancelled, TimedOut."""
    deadline = DEADLINE.get()
    if deadline is not None:
        deadline.check()


def iter_with_deadline(items: Iterable[T], *, every: int = 1) -> Iterator[T]:
    """Yield `items`, checking the deadline before every `every`-th one. Raises: Cancelled, TimedOut."""
    for count, item in enumerate(items):
        if count % every == 0:
            check_deadline()
        yield item


_READ_UNTIL: ContextVar[float | None] = ContextVar("_READ_UNTIL", default=None)


@contextmanager
def limit_reads(seconds: float) -> Iterator[None]:
    """Let the database reads of this block raise `StoreTimeout` once `seconds` have passed."""
    token = _READ_UNTIL.set(monotonic() + seconds)
    try:
        yield
    finally:
        _READ_UNTIL.reset(token)


def read_seconds_left() -> float | None:
    """Return the seconds left for reading, negative when the time is over; None without a limit."""
    until = _READ_UNTIL.get()
    return None if until is None else until - monotonic()


def is_read_overdue() -> bool:
    """Return True if the time for reading is over."""
    until = _READ_UNTIL.get()
    return until is not None and monotonic() >= until


def check_read_limit() -> None:
    """Raises: StoreTimeout when the time for reading is over."""
    if is_read_overdue():
        raise StoreTimeout(READ_TIMED_OUT)


@contextmanager
def hold_in_time(lock: threading.Lock) -> Iterator[None]:
    """Hold `lock`, waiting for it no longer than there is time to read. Raises: StoreTimeout."""
    left = read_seconds_left()
    if not lock.acquire(timeout=-1 if left is None else max(0.0, left)):
        raise StoreTimeout(READ_TIMED_OUT)
    try:
        yield
    finally:
        lock.release()
