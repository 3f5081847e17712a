"""A progress bar for work that says itself how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from recollect.cli.view import View


class Bar:
    """A progress bar that appears once it is known how much there is to do."""

    def __init__(self, view: View, what: str) -> None:
        self._view = view
        self._what = what
        self._open = ExitStack()
        self._advance: Callable[[int], None] | None = None
        self._done = 0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def report(self, done: int, total: int) -> None:
        """So much of it is done, of so much."""
        if self._advance is None:
            self._advance = self._open.enter_context(self._view.progress(self._what, total))
        self._advance(done - self._done)
        self._done = done
        if done == total:
            self._open.close()  # before what was found is shown
