"""Items: checks of their namespace, key, value and lifetime, and the text by which they are found.

A namespace is stored as a path, its names joined by "/". "/" and "%" in a name are percent-encoded, so that the paths
of a namespace and of all below it are one range.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, TypeAlias

from wellkept.errors import Invalid
from wellkept.language.values import MAX_SECONDS, copy_json
from wellkept.memory.rules_filters import EQUAL, And, Comparison, Condition, Or
from wellkept.memory.rules_kinds import RULES
from wellkept.model import Item, Kind, Memory

SEPARATOR = "/"
NAMESPACE = "namespace"
ANY_NAME = "*"
"""Name that stands for any one name where namespaces are matched."""

MAX_NAMES = 20
MAX_KEY_CHARS = 512
MAX_PLACE_BYTES = 1_200
"""Bytes of the path and the key together. A row of PostgreSQL's index takes 2,700, tenant, agent and user included."""

MAX_VALUE_BYTES = 64 * 1024
MAX_FIELDS = 20
MAX_FIELD_CHARS = 200
WHOLE = "$"
"""Field that stands for the whole value."""

WRAPPED = "$value"
"""Name under which a value that is no object is stored, because the column holds an object."""

Namespace = str | Sequence[str]
"""Namespace as callers give it: its names, or its path."""

Place: TypeAlias = tuple[Namespace, str]
"""Namespace and key of an item."""

IndexedFields = Sequence[str] | Literal[False] | None
"""Fields of a value to search: paths such as `name` or `tags[*]`; None: all texts; False: none."""

NAMES = (
    'A namespace is a list of 1 to 20 names such as ["users", "7"], or their path "users/7"; a name is printable text.'
)

_STEP = re.compile(r"([^.\[\]]+)|\[(\*|-1|\d{1,6})\]")
_BELOW = chr(ord(SEPARATOR) + 1)
"""Character behind the separator: the paths below "a" are those from "a/" to "a0"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """Unvalidated input for an item. A value of None deletes it."""

    namespace: Namespace
    key: str
    value: Any
    index: IndexedFields = None
    ttl: float | None = None  # seconds; None: unlimited
    refresh: bool = False  # reading it starts its lifetime again
    version: int | None = None  # write only if the stored item has this version; 0: if there is none
    origin: str | None = None
    created_at: datetime | None = None  # of a new item; None: now


def join_names(names: Iterable[str]) -> str:
    """Return the path of checked names.

    >>> join_names(["users", "a/b", "100%"])
    'users/a%2Fb/100%25'
    """
    return SEPARATOR.join(name.replace("%", "%25").replace(SEPARATOR, "%2F") for name in names)


def split_path(path: str) -> tuple[str, ...]:
    """Return the names of a path.

    >>> split_path("users/a%2Fb/100%25")
    ('users', 'a/b', '100%')
    """
    parts = path.split(SEPARATOR) if path else ()
    return tuple(part.replace("%2F", SEPARATOR).replace("%2f", SEPARATOR).replace("%25", "%") for part in parts)


def check_namespace(namespace: object, *, may_be_empty: bool = False) -> str:
    """Validate a namespace and return its path. Raises: Invalid."""
    names = split_path(namespace) if isinstance(namespace, str) else namespace
    if not isinstance(names, Sequence) or not (1 - may_be_empty) <= len(names) <= MAX_NAMES:
        raise Invalid(NAMES)
    if not all(isinstance(name, str) and name.strip() and name.isprintable() for name in names):
        raise Invalid(NAMES)
    path = join_names(names)
    _check_size(path)
    return path


def check_place(namespace: object, key: object) -> tuple[str, str]:
    """Validate a namespace and a key; return the path and the key. Raises: Invalid."""
    path = check_namespace(namespace)
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise Invalid(f"The key of an item is 1 to {MAX_KEY_CHARS} printable characters on one line.")
    _check_size(path + key)
    return path, key


def _check_size(place: str) -> None:
    size = len(place.encode())
    if size > MAX_PLACE_BYTES:
        raise Invalid(f"Namespace and key are at most {MAX_PLACE_BYTES:,} bytes together; these are {size:,}.")


def find_below(path: str) -> Condition | None:
    """Return the condition that a memory is an item at a path or below it; None if every item is."""
    if not path:
        return None
    first, last = path_range(path)
    below = And((Comparison(NAMESPACE, ">=", first), Comparison(NAMESPACE, "<", last)))
    return Or((Comparison(NAMESPACE, EQUAL, path), below))


def path_range(path: str) -> tuple[str, str]:
    """Return the bounds of all paths below a path, the upper one excluded; the path itself is not among them."""
    return (path + SEPARATOR, path + _BELOW) if path else ("", chr(0x10FFFF))


def check_value(value: object) -> Mapping[str, Any]:
    """Validate the value of an item; return a copy, as JSON reads it, in the form in which it is stored.

    Raises: Invalid.
    """
    advice = " Store a long text as a detail, and its key in the item."
    copied = copy_json(value, "The value of an item", what="value", most=MAX_VALUE_BYTES, advice=advice)
    is_plain = isinstance(copied, dict) and copied.keys() != {WRAPPED}
    return copied if is_plain else {WRAPPED: copied}


def unwrap_value(stored: Mapping[str, Any]) -> Any:
    """Return the value of an item from its stored form."""
    return stored[WRAPPED] if stored.keys() == {WRAPPED} else stored


def is_same_value(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return True if two stored values are equal as JSON, where 1 is not true."""
    return first == second and json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def check_fields(index: object) -> IndexedFields:
    """Validate the fields to search. Raises: Invalid."""
    if index is None or index is False:
        return index
    is_list = isinstance(index, Sequence) and not isinstance(index, str) and len(index) <= MAX_FIELDS
    if not is_list or not all(isinstance(each, str) and _is_field(each) for each in index):  # type: ignore[attr-defined]
        raise Invalid(
            f"`index` names up to {MAX_FIELDS} fields of the value, such as name, address.city, tags[*] or $ for all "
            "of it; false leaves the item out of every search."
        )
    return tuple(index)  # type: ignore[arg-type]


def _is_field(field: str) -> bool:
    bare = field.removeprefix(WHOLE + ".")
    return 0 < len(field) <= MAX_FIELD_CHARS and (field == WHOLE or not _STEP.sub("", bare).strip("."))


def render_text(stored: Mapping[str, Any], index: IndexedFields) -> str:
    """Return the text by which an item is found: a line for each text of the chosen fields.

    >>> render_text({"name": "Lena", "address": {"city": "Oslo", "zip": 150}, "tags": ["a", "b"]}, None)
    'name: Lena\\naddress.city: Oslo\\ntags: a\\ntags: b'
    >>> render_text({"name": "Lena", "address": {"city": "Oslo", "zip": 150}}, ["address.zip"])
    'address.zip: 150'
    >>> render_text({"tags": ["a", "b", "c"]}, ["tags[0]", "tags[-1]"])
    'tags: a\\ntags: c'
    """
    if index is False:
        return ""
    value = unwrap_value(stored)
    if index is None:
        lines = (_line(path, leaf) for path, leaf in _iter_leaves(value, "") if isinstance(leaf, str))
    else:
        lines = (
            _line(path, leaf if isinstance(leaf, str) else json.dumps(leaf))
            for field in index
            for place, chosen in _select(value, field)
            for path, leaf in _iter_leaves(chosen, place)
            if leaf is not None
        )
    limit = RULES[Kind.ITEM].max_chars
    # Each line has a character at least, so no more of them can fit.
    return "\n".join(islice((line for line in lines if line.strip()), limit))[:limit].strip()


def _line(path: str, leaf: str) -> str:
    return f"{path}: {leaf}" if path and leaf.strip() else leaf


def _iter_leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that are neither objects nor lists, each with the names of the fields above it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _iter_leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_leaves(inner, path)
    else:
        yield path, value


def _select(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that a field names, each with the names above it."""
    found = [("", value)]
    steps = () if field == WHOLE else _STEP.findall(field.removeprefix(WHOLE + "."))
    for name, place in steps:
        inner: list[tuple[str, Any]] = []
        for path, each in found:
            if name and isinstance(each, dict) and name in each:
                inner.append((f"{path}.{name}" if path else name, each[name]))
            elif place and isinstance(each, list):
                inner += [(path, one) for one in (each if place == ANY_NAME else each[int(place) :][:1])]
        found = inner
    yield from found


def check_ttl(ttl: object) -> float | None:
    """Validate a lifetime in seconds; None: unlimited. Raises: Invalid."""
    if ttl is None:
        return None
    # NaN fails the comparison as well.
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= MAX_SECONDS:
        raise Invalid(f"`ttl` is a number of seconds above 0, at most {MAX_SECONDS:,}; without one, an item stays.")
    return float(ttl)


def end_of(now: datetime, ttl: float | None) -> datetime | None:
    """Return the time at which an item with this lifetime expires."""
    return None if ttl is None else now + timedelta(seconds=ttl)


def make_item(memory: Memory, score: float | None = None) -> Item:
    """Return the item that a memory holds."""
    return Item(
        id=memory.id,
        namespace=split_path(memory.namespace or ""),
        key=memory.item_key or "",
        value=unwrap_value(memory.metadata),
        created_at=memory.created_at,
        updated_at=memory.updated_at or memory.created_at,
        expires_at=memory.expires_at,
        version=memory.version,
        user=memory.user,
        score=score,
    )


def literal_path(pattern: Sequence[str]) -> str:
    """Return the path of the names before the first `*`."""
    return join_names(pattern[: pattern.index(ANY_NAME)] if ANY_NAME in pattern else pattern)


def matches(names: Sequence[str], prefix: Sequence[str], suffix: Sequence[str]) -> bool:
    """Return True if a namespace begins with `prefix` and ends with `suffix`.

    >>> matches(("users", "7", "docs"), ("users", "*"), ("docs",)), matches(("users",), ("users", "*"), ())
    (True, False)
    """
    if len(names) < max(len(prefix), len(suffix)):
        return False
    pairs = (*zip(prefix, names, strict=False), *zip(reversed(suffix), reversed(names), strict=False))
    return all(expected in (ANY_NAME, name) for expected, name in pairs)
