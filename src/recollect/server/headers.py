"""A request's headers, for guards that each look at one of them."""

from __future__ import annotations

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this name, which is in small letters.

    >>> header({"headers": [(b"host", b"localhost:8077")]}, b"host")
    'localhost:8077'
    """
    for each, value in scope["headers"]:
        if each == name:
            return str(value, "latin-1")
    return None
