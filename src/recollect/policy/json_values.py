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
_PLAIN = (str, int, float, type(None))


def read_json(body: bytes) -> Any:
    """Parse a body of JSON in UTF-8.

    Raises: Invalid when it is too deep, repeats a name or holds half a surrogate pair; ValueError when it is no JSON.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
    except RecursionError:
        raise Invalid(_too_deep("body")) from None
    # UTF-8 has no half pairs, only an escape makes one. Both checks walk the value and take longer than parsing it.
    if b"\\ud" in body or b"\\uD" in body:
        checked_json(value, what="body")
    elif body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        check_depth(value, what="body")
    return value


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
            if isinstance(each, _PLAIN):  # first, since nearly all are, and asking for a Mapping is slow
                continue
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
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Invalid(f"The body names the field {twice[:40]!r} twice in one object; send it once.")
    return found
