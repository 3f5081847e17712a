"""Where a listing goes on: opaque to clients, the last id to us."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

from recollect.errors import Invalid
from recollect.ports import Place

NOT_OURS = "The cursor is not one this listing gave; begin again without it."
NUMBER = re.compile("[0-9]{1,18}")


def encode(listing: str, last: str) -> str:
    """
    >>> decode("agents", encode("agents", "atlas"))
    'atlas'
    """
    return base64.urlsafe_b64encode(f"{listing}:{last}".encode()).decode().rstrip("=")


def encode_next(listing: str, end: Place | str | int | None) -> str | None:
    """Return the cursor that continues behind the last item of a page; None if it is the last page."""
    if end is None:
        return None
    return encode_place(listing, end) if isinstance(end, tuple) else encode(listing, str(end))


def decode(listing: str, cursor: str) -> str:
    """The id a listing of this name stopped at.

    Raises: Invalid.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        name, _, last = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(":")
    except ValueError:  # not base64, or not text
        name = last = ""
    if name != listing or not last:
        raise Invalid(NOT_OURS)
    return last


def decode_number(listing: str, cursor: str) -> int:
    """The same for a listing whose ids are numbers.

    Raises: Invalid.
    """
    last = decode(listing, cursor)
    if not NUMBER.fullmatch(last):
        raise Invalid(NOT_OURS)
    return int(last)


def encode_place(listing: str, place: Place) -> str:
    """Where a listing by time goes on, also when what stood there is gone by then."""
    return encode(listing, f"{place[0].isoformat()} {place[1]}")


def decode_place(listing: str, cursor: str) -> Place:
    """Raises: Invalid."""
    at, _, id = decode(listing, cursor).partition(" ")
    try:
        moment = datetime.fromisoformat(at)
        is_ours = moment.tzinfo is not None and id != "" and id.isprintable()
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        is_ours = False
    if not is_ours:
        raise Invalid(NOT_OURS)
    return moment, id
