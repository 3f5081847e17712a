"""Limits on JSON that comes from outside, checked once where it enters.

Deeply nested values exhaust the interpreter's stack somewhere far from the door, and half a surrogate pair cannot be
written to a database, a file or an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.errors import Invalid
from recollect.policy.text import has_half_pair

MAX_DEPTH = 32


def read_json(body: bytes) -> Any:
    """Parse a body of JSON in UTF-8.

    Raises: Invalid when it is too deep, repeats a name or holds half a surrogate pair; ValueError when it is no JSON.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
    except RecursionError:
        raise Invalid(_too_deep("body")) from None
    return checked_json(value, what="body")


def checked_json(value: Any, *, what: str) -> Any:
    """Return `value` if it is not too deep and all its text can be encoded.

    Raises: Invalid.
    """
    for level in _levels(value, what):
        if any(isinstance(each, str) and has_half_pair(each) for each in level):
            raise Invalid(f"The {what} holds half a surrogate pair; send whole ones.")
    return value


def check_depth(value: Any, *, what: str, most: int = MAX_DEPTH) -> None:
    """Raises: Invalid when `value` is nested more than `most` levels deep."""
    for _ in _levels(value, what, most):
        pass


def _levels(value: Any, what: str, most: int = MAX_DEPTH) -> Iterable[Sequence[Any]]:
    """Walk the value level by level; names of fields count as values. Raises: Invalid."""
    level = [value]
    for _ in range(most + 1):
        yield level
        inner: list[Any] = []
        for each in level:
            if isinstance(each, Mapping):
                inner += each
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
        if not inner:
            return
        level = inner
    raise Invalid(_too_deep(what))


def _too_deep(what: str) -> str:
    return f"The {what} is nested too deeply; at most {MAX_DEPTH} levels are accepted."


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Invalid(f"The body names the field {twice[:40]!r} twice in one object; send it once.")
    return found
