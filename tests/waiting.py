"""Waiting for what another thread or process will do, however late it gets its turn."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 100.0
"""Seconds; it only ends what would hang, and says nothing about how long anything should take."""


def eventually(is_so: Callable[[], object]) -> None:
    """Return as soon as it is so."""
    deadline = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
