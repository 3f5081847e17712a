"""What one piece of work costs beside another, on a machine where neither costs the same twice."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TRIES = 7
ENOUGH = 0.3  # seconds of work, after which no further try is needed: long work evens itself out


def times_as_long(work: Callable[[], object], other: Callable[[], object]) -> float:
    """How many times as much of this thread's processor time `work` takes as `other`.

    They take turns, so that a busy neighbour slows both down, and of each the quickest try counts. Meanwhile, no
    garbage is collected: how much there is depends on what ran before.
    """
    tries: list[tuple[float, float]] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(TRIES):
            begun = time.thread_time()
            other()
            between = time.thread_time()
            work()
            tries.append((time.thread_time() - between, between - begun))
            if sum(map(sum, tries)) > ENOUGH:
                break
    finally:
        gc.enable()
    return min(each for each, _ in tries) / max(min(each for _, each in tries), 1e-6)
