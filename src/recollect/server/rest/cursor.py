"""Where a listing goes on: opaque to clients, the last id to us."""

from __future__ import annotations

import base64

from recollect.errors import Invalid


def encode(listing: str, last: str) -> str:
    """
    >>> decode("agents", encode("agents", "atlas"))
    'atlas'
    """
    return base64.urlsafe_b64encode(f"{listing}:{last}".encode()).decode().rstrip("=")


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
        raise Invalid("The cursor is not one this listing gave; begin again without it.")
    return last
