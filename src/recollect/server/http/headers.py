"""Headers: reading those of a request, and adding those every answer has."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Scope

Headers = Iterable[tuple[bytes, bytes]]

PROTECTION: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers that keep answers out of caches and browsers from guessing their type."""


def add_protection(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, with those of `PROTECTION` that it lacks.

    >>> add_protection([(b"cache-control", b"max-age=3600")])
    [(b'cache-control', b'max-age=3600'), (b'x-content-type-options', b'nosniff')]
    """
    existing = list(headers)
    names = {name.lower() for name, _ in existing}
    return existing + [each for each in PROTECTION if each[0] not in names]


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this name (lower case).

    >>> header({"headers": [(b"host", b"localhost:8077")]}, b"host")
    'localhost:8077'
    """
    for each, value in scope["headers"]:
        if each == name:
            return str(value, "latin-1")
    return None


def has_json(scope: Scope) -> bool:
    """Return True if the Content-Type is JSON.

    >>> has_json({"headers": [(b"content-type", b"application/merge-patch+json; charset=utf-8")]})
    True
    """
    main, _, kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower().partition("/")
    return main == "application" and "/" not in kind and (kind == "json" or kind.endswith("+json"))


def has_body(scope: Scope) -> bool:
    """Return True if the request announces a body."""
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None
