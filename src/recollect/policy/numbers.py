"""Bounds of the numbers that come from outside: what every engine can store and compute with.

REST bodies, tools, the verbs of the library and the command line all have their numbers checked here.
"""

from __future__ import annotations

from recollect.errors import Invalid

MAX_TOKENS = 1_000_000_000
MAX_SECONDS = 1_000_000_000

MAX_PLACE = 10**18 - 1
"""The highest number, position, line or offset: SQLite and PostgreSQL have 64 bits."""


def checked_whole(value: object, what: str, *, least: int = 0, most: int = MAX_PLACE) -> int:
    """Return a whole number within its bounds.

    Raises: Invalid.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Invalid(f"{what} is a whole number from {least} to {most:,}.")
    return value


def checked_before(before: object) -> int | None:
    """Return the number a listing continues before; None: it begins.

    Raises: Invalid.
    """
    return None if before is None else checked_whole(before, "`before`", least=1)


def checked_seconds(value: object, what: str) -> float:
    """Return a duration.

    Raises: Invalid.
    """
    # Not a number is not within any bounds.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise Invalid(f"{what} is a number of seconds from 0 to {MAX_SECONDS:,}.")
    return value
