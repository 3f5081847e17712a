"""A recall that asks its sources in the thread it was called in, because somebody watches over that thread.

To have them asked on another thread, so as to be able to answer while one of them hangs, takes two ways from one
processor to another: a quarter of a recall where many ask at once. A thread of a server need not come back. Whoever
watches it does the same work again elsewhere when it takes too long, and the recall that is called then goes on with
what the first one has begun.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Abandoned(Exception):
    """The work is being done again elsewhere, and nobody wants to hear of this one."""


class Lane(Generic[T]):
    """What is known of one piece of work both to the thread that does it and to whoever watches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: T | None = None
        self._patience = 0.0
        self._is_used = False
        self._is_left = False

    def enter(self, begun: T, *, patience: float) -> bool:
        """Whether it may be done here, for so many seconds before another thread takes it over; only once."""
        with self._lock:
            if self._is_used:
                return False
            self._is_used, self._patience, self._begun = True, patience, begun
            return True

    def end(self) -> None:
        """It is done.

        Raises: Abandoned when another thread has taken it over.
        """
        with self._lock:
            if self._is_left:
                raise Abandoned
            self._begun = None

    def leave(self, *, after: float) -> bool:
        """Whether it has taken too long, if it was begun so many seconds ago, and is to be taken over now."""
        with self._lock:
            if self._begun is None or self._is_left or after < self._patience:
                return False
            self._is_left = True
            return True

    def taken_over(self) -> T | None:
        """What the thread that was left is at; None unless one was, and when asked again."""
        with self._lock:
            if not self._is_left:
                return None
            begun, self._begun = self._begun, None
            return begun


LANE: ContextVar[Lane[Any] | None] = ContextVar("LANE", default=None)
"""Set by whoever watches."""
