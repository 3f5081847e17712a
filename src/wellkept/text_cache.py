"""Process-wide caches of functions of texts, which an erasure clears.

They outlive the store that a text comes from, so no store can drop them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

T = TypeVar("T")

_caches: list[_lru_cache_wrapper[object]] = []


def cache_text(maxsize: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Cache the results of a function of texts, like `lru_cache`, until `clear_text_caches` is called."""

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(maxsize=maxsize)(function)
        _caches.append(cached)
        return cached

    return decorate


def clear_text_caches() -> None:
    """Drop all texts and words that the decorated functions have cached."""
    for cached in _caches:
        cached.cache_clear()
