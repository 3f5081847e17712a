"""Bounds of numbers from callers that every engine can store and compute with.

REST bodies, tools, library methods and the command line all validate their numbers here.
"""

from __future__ import annotations

from wellkept.errors import Invalid

MAX_TOKENS = 1_000_000_000
MAX_SECONDS = 1_000_000_000

MAX_PLACE = 10**18 - 1
"""Highest number, position, line or offset; it fits the 64-bit integers of SQLite and PostgreSQL."""


def check_whole(value: object, what: str, *, least: int = 0, most: int = MAX_PLACE) -> int:
    """Validate a whole number within its bounds. Raises: Invalid."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Invalid(f"{what} is a whole number from {least} to {most:,}.")
    return value


def check_before(before: object) -> int | None:
    """Validate the number before which a listing continues; None starts at the end. Raises: Invalid."""
    return None if before is None else check_whole(before, "`before`", least=1)


def check_seconds(value: object, what: str) -> float:
    """Validate a duration. Raises: Invalid."""
    # NaN fails the comparison as well.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise Invalid(f"{what} is a number of seconds from 0 to {MAX_SECONDS:,}.")
    return value
