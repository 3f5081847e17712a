"""Calls into code of others, which may raise anything, and into native code, which must end before the program does."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from wellkept.errors import ModelError

T = TypeVar("T")


def call_foreign(what: str, function: Callable[[], T]) -> T:
    """Call `function` and return its result; `what` names the callee in errors. Raises: ModelError."""
    try:
        return function()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The {what} failed ({type(error).__name__}).") from error


class NativeCalls:
    """Calls into a library of C++, which aborts the whole program if Python ends one of its threads inside them.

    At exit Python ends every daemon thread that comes back from such a call, so a program waits for the calls that run,
    and begins no more.
    """

    def __init__(self) -> None:
        self._reset()
        atexit.register(self._close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Call `function` like `call_foreign`. Raises: ModelError, also when the program is ending."""
        with self._changed:
            if self._is_closed:
                raise ModelError(f"The {what} is not asked any more: the program is ending.")
            self._running += 1
        try:
            return call_foreign(what, function)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._running)

    def _reset(self) -> None:
        """Start anew: in a forked process, other threads do not go on."""
        self._changed, self._running, self._is_closed = threading.Condition(), 0, False


NATIVE_CALLS = NativeCalls()
