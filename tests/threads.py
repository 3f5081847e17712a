"""Making races likely: threads that take turns as often as they can, on empty caches and words nobody has used."""

from __future__ import annotations

import functools
import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

SYLLABLES = "ba bri co dro fe gla hu ju ka lo mi no pra que ri su ta ver wo xi ze".split()
ENDINGS = ("", *"s ed ing ingly ation fulness ousli iviti izers ement ies eedly logist".split())


def fresh_words(count: int) -> Sequence[str]:
    """Words that look English and are in no cache of this process."""
    made = random.SystemRandom()
    return ["".join(made.choices(SYLLABLES, k=4)) + made.choice(ENDINGS) for _ in range(count)]


def clear_caches() -> None:
    """Empty every memoised function of the package."""
    gc.unfreeze()  # else those loaded before the first test would not be listed
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("wellkept."):
            each.cache_clear()
    gc.freeze()


def run_together(count: int, work: Callable[[int], None]) -> None:
    """Call `work` with 0, 1, … on so many threads at once, and wait for all of them."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    with _hasty():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def _hasty() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
