"""Waiting for what another thread or process will do, however late it gets its turn."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 100.0
"""Seconds; it only ends what would hang, and says nothing about how long anything should take."""

PATIENT = {"RECOLLECT_RECALL_DEADLINE": "60"}
"""The environment of programs that tests start: on a busy machine a thread may not get its turn for seconds, and no
test is to lose a source of recall to that."""


def eventually(is_so: Callable[[], object], *, within: float = LIMIT) -> None:
    """Return as soon as it is so."""
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
