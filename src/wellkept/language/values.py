"""Values from outside within bounds: numbers that every engine can store, and JSON of a bounded size and depth.

REST bodies, tools, library methods and the command line all validate their numbers here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.text import check_text, has_half_pair

MAX_TOKENS = 1_000_000_000
MAX_SECONDS = 1_000_000_000

MAX_LIMIT = 100
MIN_RELEVANCE = "`min_relevance` is a number from 0 (everything) to 1."
MAX_QUERY_CHARS = 10_000

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


def check_limit(limit: object, *, most: int = MAX_LIMIT) -> int:
    """Validate the number of records to return. Raises: Invalid."""
    return check_whole(limit, "The limit", least=1, most=most)


def check_min_relevance(min_relevance: object) -> float | None:
    """Validate the least relevance of hits; None sets no limit. Raises: Invalid."""
    if min_relevance is None:
        return None
    if isinstance(min_relevance, bool) or not isinstance(min_relevance, int | float) or not 0 <= min_relevance <= 1:
        raise Invalid(MIN_RELEVANCE)
    return float(min_relevance)


def parse_min_relevance(text: str) -> float | None:
    """Parse a least relevance from a form; None if it is left empty. Raises: Invalid."""
    try:
        least = float(text) if text.strip() else None
    except ValueError:
        raise Invalid(MIN_RELEVANCE) from None
    return check_min_relevance(least)


def check_query(query: str) -> str:
    """Return a query without surrounding white space, cut to `MAX_QUERY_CHARS`. Raises: Invalid."""
    query = query.strip()
    if not query:
        raise Invalid("The query is blank; say what to look for.")
    return query[:MAX_QUERY_CHARS]


_IRRELEVANT_BYTES = bytes(set(range(256)) - set(b'"[{,'))
_CHUNK = 64 * 1024


def count_json_parts(text: str | bytes) -> int:
    """Count brackets and commas, an upper bound on values, which take up to 120 bytes each; strings count as well.

    >>> count_json_parts('[{"a": 1}, {}]'), count_json_parts(b'["a,b"]')
    (4, 2)
    """
    if isinstance(text, bytes):
        return text.count(b"[") + text.count(b"{") + text.count(b",")
    return text.count("[") + text.count("{") + text.count(",")


def has_too_many_values(body: bytes, most: int) -> bool:
    """Return True if a JSON text has more than `most` brackets and commas outside of its strings.

    >>> has_too_many_values(b'["a,b,c,d"]', 3), has_too_many_values(b'[1,2,3,4]', 3)
    (False, True)
    """
    if count_json_parts(body) <= most:
        return False
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = body.translate(None, _IRRELEVANT_BYTES)
    count, is_inside = 0, 0
    # Work in chunks so that other threads can run in between and the loop can stop early.
    for start in range(0, len(marks), _CHUNK):
        pieces = marks[start : start + _CHUNK].split(b'"')
        count += sum(map(len, pieces[is_inside::2]))
        if count > most:
            return True
        is_inside ^= (len(pieces) - 1) % 2
    return False


MAX_DEPTH = 32
_PLAIN = (str, int, float, type(None))


def read_json(body: bytes) -> Any:
    """Parse a body of JSON in UTF-8.

    Raises: Invalid when it is too deep, repeats a name or holds half a surrogate pair; ValueError when it is no JSON.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_reject_repeats)
    except RecursionError:
        raise Invalid(_too_deep_message("body")) from None
    # UTF-8 has no half pairs, only an escape makes one. Both checks walk the value, which takes longer than parsing it.
    if b"\\ud" in body or b"\\uD" in body:
        check_json(value, what="body")
    elif body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        check_depth(value, what="body")
    return value


def check_json(value: Any, *, what: str) -> Any:
    """Return `value` if it is not too deep and all its text can be encoded. Raises: Invalid."""
    for level in _levels(value, what):
        if any(isinstance(each, str) and has_half_pair(each) for each in level):
            raise Invalid(f"The {what} holds half a surrogate pair; send whole ones.")
    return value


def check_storable(value: Any, *, what: str, most: int = MAX_DEPTH) -> None:
    """Check that a value is not too deep, and that every engine can store its texts unchanged. Raises: Invalid."""
    for level in _levels(value, what, most):
        for each in level:
            if isinstance(each, str):
                check_text(each, what=what)


def copy_json(value: object, name: str, *, what: str, most: int, advice: str = "", **reading: Any) -> Any:
    """Return a copy of a value as JSON reads it, if it is of JSON types, of at most so many bytes, and storable.

    `name` begins the sentences of an error; `reading` goes to `json.loads`.

    Raises: Invalid.
    """
    check_storable(value, what=what)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        known = "texts, finite numbers, true, false, null, lists, objects"
        raise Invalid(f"{name} may hold only what JSON knows: {known}.") from None
    size = len(text.encode())
    if size > most:
        raise Invalid(f"{name} is at most {most:,} bytes of JSON; this is {size:,}.{advice}")
    return json.loads(text, **reading)


def check_depth(value: Any, *, what: str, most: int = MAX_DEPTH) -> None:
    """Check the depth of a value. Raises: Invalid when `value` is nested more than `most` levels deep."""
    for _ in _levels(value, what, most):
        pass


def _levels(value: Any, what: str, most: int = MAX_DEPTH) -> Iterable[Sequence[Any]]:
    """Yield the values level by level; names of fields count as values. Raises: Invalid."""
    level = [value]
    for _ in range(most + 1):
        yield level
        inner: list[Any] = []
        for each in level:
            # Checked first because nearly all values are plain and the test for a Mapping is slow.
            if isinstance(each, _PLAIN):
                continue
            if isinstance(each, Mapping):
                inner += each
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
        if not inner:
            return
        level = inner
    raise Invalid(_too_deep_message(what))


def _too_deep_message(what: str) -> str:
    """Build the error message for values nested too deeply."""
    return f"The {what} is nested too deeply; at most {MAX_DEPTH} levels are accepted."


def _reject_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict and refuse repeated names."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Invalid(f"The body names the field {repeated[:40]!r} twice in one object; send it once.")
    return fields
