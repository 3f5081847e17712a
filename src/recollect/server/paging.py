"""Pages of lists, which end at a number of bytes as well as at a number of items.

Items are read a few at a time: a page of 500 may be 200 MB long in the store, and must not be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from pydantic_core import to_json

from recollect.api.agent import MAX_PAGE
from recollect.services.recall.recall import checked_limit

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""Bytes of JSON a page holds at most; one item is sent whatever its size."""

READ_AT_ONCE = 51
"""Items read from the store at a time. The usual page of 100, and the item behind it, take two reads."""

READ_LARGE_AT_ONCE = 17
"""The same for items whose texts may have 100,000 characters."""

Item = TypeVar("Item")
Place = TypeVar("Place")


class Page(NamedTuple, Generic[Item, Place]):
    """A part of a list."""

    items: list[Item]
    end: Place | None  # of the last item, if there are more behind it


def read_page(
    read: Callable[[Place, int], Iterable[Item]],
    place_of: Callable[[Item], Place],
    start: Place,
    *,
    limit: int,
    at_once: int = READ_AT_ONCE,
) -> Page[Item, Place]:
    """Return the page behind `start`.

    `read` returns up to so many items behind a place, fewer only at the end of the list. Raises: Invalid.
    """
    checked_limit(limit, most=MAX_PAGE)
    items: list[Item] = []
    size = 0
    while True:
        # One more than the page holds tells whether it is the last one.
        wanted, before = min(at_once, limit + 1 - len(items)), len(items)
        for item in read(start, wanted):
            size += count_bytes(item)
            if len(items) == limit or (items and size > MAX_PAGE_BYTES):
                return Page(items, place_of(items[-1]))
            items.append(item)
        if len(items) < before + wanted:
            return Page(items, None)
        start = place_of(items[-1])


def fit_page(items: Iterable[Item]) -> list[Item]:
    """Return the first items that fit into a page, of a list that is not continued."""
    fitting: list[Item] = []
    size = 0
    for item in items:
        size += count_bytes(item)
        if fitting and size > MAX_PAGE_BYTES:
            break
        fitting.append(item)
    return fitting


def count_bytes(item: object) -> int:
    """Return the length of a record as JSON.

    >>> count_bytes("tea"), count_bytes({"cup": "\N{HOT BEVERAGE}"})
    (5, 13)
    """
    return len(to_json(item, bytes_mode="base64", fallback=repr))
