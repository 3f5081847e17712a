"""Pages of lists, limited by bytes as well as by items, and the cursors that continue them.

Items are read a few at a time: 500 of them may take 200 MB in the store, which must not be in memory at once.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import to_json

from wellkept.api.views import MAX_PAGE
from wellkept.errors import Invalid
from wellkept.language.names import encode_cursor
from wellkept.language.values import check_limit
from wellkept.model.stored import Place

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""Maximum bytes of JSON in a page; a single item is sent whatever its size."""

READ_AT_ONCE = 51
"""Items read from the store at a time. The usual page of 100, and the item after it, take two reads."""

READ_LARGE_AT_ONCE = 17
"""The same for items whose texts may have 100,000 characters."""

Item = TypeVar("Item")
Position = TypeVar("Position")


class ListPage(NamedTuple, Generic[Item, Position]):
    """A part of a list."""

    items: list[Item]
    end: Position | None  # of the last item; None: there are no more


def read_page(
    read: Callable[[Position, int], Iterable[Item]],
    place_of: Callable[[Item], Position],
    start: Position,
    *,
    limit: int,
    at_once: int = READ_AT_ONCE,
) -> ListPage[Item, Position]:
    """Return the page after `start`.

    `read(position, limit)` returns the items after a position, fewer than `limit` only at the end of the list.
    Raises: Invalid.
    """
    check_limit(limit, most=MAX_PAGE)
    items: list[Item] = []
    size = 0
    while True:
        # One more than the page holds tells whether it is the last one.
        count, before = min(at_once, limit + 1 - len(items)), len(items)
        for item in read(start, count):
            size += count_bytes(item)
            if len(items) == limit or (items and size > MAX_PAGE_BYTES):
                return ListPage(items, place_of(items[-1]))
            items.append(item)
        if len(items) < before + count:
            return ListPage(items, None)
        start = place_of(items[-1])


def fit_page(items: Iterable[Item]) -> list[Item]:
    """Return the first items that fit into one page, for lists without a next page."""
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
    kind: type[Any] = type(item)
    if is_dataclass(kind):
        return len(_writer(kind).dump_json(item))
    return len(to_json(item, bytes_mode="base64", fallback=repr))


# Three times as fast as finding the type of each field again.
@cache
def _writer(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


NOT_OURS = "The cursor is not from this listing; start again without it."
NUMBER = re.compile("[0-9]{1,18}")


class PageRequest(Protocol):
    """The page that a client asks for."""

    limit: int
    cursor: str


@dataclass(frozen=True)
class PagedList(Generic[Position]):
    """A list that clients read page by page. Its cursors carry its name, so that no other list takes them."""

    name: str
    decode: Callable[[str, str], Position]
    place_of: Callable[[Any], Position]
    first: Position  # where the first page starts
    at_once: int = READ_AT_ONCE
    direction: str = "after"  # the place that `verb` takes

    def read(self, verb: Callable[..., Iterable[Item]], asked: PageRequest) -> tuple[list[Item], str | None]:
        """Return the items of a page, which a verb of the library reads `before` or `after` a place, and the cursor of
        the next one. Raises: Invalid.
        """
        start = self.decode(self.name, asked.cursor) if asked.cursor else self.first
        page = read_page(
            lambda place, limit: verb(**{self.direction: place}, limit=limit),
            self.place_of,
            start,
            limit=asked.limit,
            at_once=self.at_once,
        )
        # Positions are those that `decode` returns, or None.
        end = cast(Place | str | int | None, page.end)
        return page.items, None if end is None else encode_cursor(self.name, end)


def decode_cursor(listing: str, cursor: str) -> str:
    """Return the id a listing of this name stopped at. Raises: Invalid."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        name, _, last = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(":")
    # Not base64, or not text.
    except ValueError:
        name = last = ""
    if name != listing or not last:
        raise Invalid(NOT_OURS)
    return last


def decode_number(listing: str, cursor: str) -> int:
    """Return the number a listing of this name stopped at. Raises: Invalid."""
    last = decode_cursor(listing, cursor)
    if not NUMBER.fullmatch(last):
        raise Invalid(NOT_OURS)
    return int(last)


def decode_place(listing: str, cursor: str) -> Place:
    """Return the place a listing by time stopped at. Raises: Invalid."""
    at, _, id = decode_cursor(listing, cursor).partition(" ")
    try:
        moment = datetime.fromisoformat(at)
        is_ours = moment.tzinfo is not None and id != "" and id.isprintable()
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        is_ours = False
    if not is_ours:
        raise Invalid(NOT_OURS)
    return moment, id
