"""Waiting for what another thread or process will do, however late it gets its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT = 100.0
"""Seconds; it only ends what would hang, and says nothing about how long anything should take."""

PATIENT = {"WELLKEPT_RECALL_DEADLINE": "60"}
"""The environment of programs that tests start: on a busy machine a thread may not get its turn for seconds, and no
test is to lose a source of recall to that."""


def comes_true(is_so: Callable[[], object], *, within: float = LIMIT) -> bool:
    """Wait until it is so; return False if it is not in time."""
    deadline = time.monotonic() + within
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def eventually(is_so: Callable[[], object], *, within: float = LIMIT) -> None:
    """Return as soon as it is so."""
    assert comes_true(is_so, within=within), "it did not come to that"


async def pass_turn(times: int = 1) -> None:
    """Let the event loop do what is due."""
    for _ in range(times):
        await asyncio.sleep(0)
