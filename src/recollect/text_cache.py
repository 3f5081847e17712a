"""Process-wide caches of functions of texts, which an erasure clears.

They outlive the store that a text comes from, so no store can drop them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_clears: list[Callable[[], None]] = []


def cache_text(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the results of a function of texts, like `lru_cache`, until `clear_text_caches` is called."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=maxsize)(function)
        _clears.append(cached.cache_clear)
        return cached

    return decorate


def clear_text_caches() -> None:
    """Drop all texts and words that the decorated functions have cached."""
    for clear in _clears:
        clear()
