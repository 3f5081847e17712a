"""Conditions of filters: their syntax tree, the fields of each record, and their evaluation in Python.

A filter is a tree of `Comparison`, `And`, `Or` and `Not`. `!=` is a negated `=`, and `in` several `=` joined by `or`.
A comparison is typed: a text never equals a number. It is false for a missing value, and true for a list if it is for
one of its elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from wellkept.language.text import fold
from wellkept.model import Kind, Origin, Scope, State

Scalar: TypeAlias = str | int | float | bool | datetime | None
METADATA = "metadata"
FACT = "fact"
JSON_FIELDS = frozenset({METADATA, FACT})
"""Fields with keys of their own."""
STATE = "state"
EQUAL, EXISTS = "=", "exists"
ORDERINGS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FieldType(Enum):
    """Type of the values of a field."""

    TEXT = "text"
    TAGS = "tags"
    NUMBER = "number"
    TIME = "time"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class FilterField:
    """Field that a filter may name."""

    type: FieldType
    choices: tuple[str, ...] = ()  # its values, if there are only a few


Fields: TypeAlias = Mapping[str, FilterField]
_TEXT, _NUMBER, _TIME = (FilterField(each) for each in (FieldType.TEXT, FieldType.NUMBER, FieldType.TIME))
_METADATA = FilterField(FieldType.JSON)

MEMORY_FIELDS: Fields = {
    "kind": FilterField(FieldType.TEXT, tuple(Kind)),
    "tags": FilterField(FieldType.TAGS),
    "scope": FilterField(FieldType.TEXT, tuple(Scope)),
    "session_id": _TEXT,
    "user": _TEXT,
    "origin": FilterField(FieldType.TEXT, tuple(Origin)),
    "category": _TEXT,
    "importance": _NUMBER,
    "created_at": _TIME,
    "expires_at": _TIME,
    STATE: FilterField(FieldType.TEXT, tuple(State)),
    "namespace": _TEXT,
    "item_key": _TEXT,
    METADATA: _METADATA,
    FACT: _METADATA,
}
DOCUMENT_FIELDS: Fields = {
    "title": _TEXT,
    "category": _TEXT,
    "source": _TEXT,
    "created_at": _TIME,
    "updated_at": _TIME,
    METADATA: _METADATA,
}
EVENT_FIELDS: Fields = {"action": _TEXT, "agent": _TEXT, "actor": _TEXT, "at": _TIME}
SESSION_FIELDS: Fields = {"user": _TEXT, "created_at": _TIME, "updated_at": _TIME, METADATA: _METADATA}
ALIASES: Mapping[str, str] = {
    "tag": "tags",
    "created": "created_at",
    "expires": "expires_at",
    "updated": "updated_at",
    "session": "session_id",
    "user_id": "user",
    "key": "item_key",
    "value": METADATA,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a field with a value; `exists` has none."""

    field: str
    op: str
    value: Scalar = None
    path: tuple[str, ...] = ()  # keys below `metadata`


@dataclass(frozen=True, slots=True)
class And:
    """Conditions that must all hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Conditions of which one must hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Condition that must not hold."""

    part: Condition


Condition: TypeAlias = Comparison | And | Or | Not


def join_conditions(*conditions: Condition | None) -> Condition | None:
    """Return a condition that holds if all of the given ones do; None stands for no condition."""
    parts = tuple(each for each in conditions if each is not None)
    return parts[0] if len(parts) == 1 else And(parts) if parts else None


def list_comparisons(condition: Condition | None) -> Iterator[Comparison]:
    """Yield all comparisons of a condition."""
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, Not):
        yield from list_comparisons(condition.part)
    elif condition is not None:
        for part in condition.parts:
            yield from list_comparisons(part)


def names_field(condition: Condition | None, field: str) -> bool:
    """Return True if a condition compares the field."""
    return any(each.field == field for each in list_comparisons(condition))


def is_matching(condition: Condition | None, record: Any, now: datetime) -> bool:
    """Return True if a record, such as a memory, meets the condition at `now`."""
    match condition:
        case None:
            return True
        case And(parts):
            return all(is_matching(part, record, now) for part in parts)
        case Or(parts):
            return any(is_matching(part, record, now) for part in parts)
        case Not(part):
            return not is_matching(part, record, now)
    return any(is_passing(found, condition.op, condition.value) for found in _list_values(condition, record, now))


def _list_values(comparison: Comparison, record: Any, now: datetime) -> Iterator[object]:
    """Yield the values of the compared field of a record: none if it is missing, several for tags and lists."""
    if comparison.field == METADATA:
        yield from list_json_values(find_at(record.metadata, comparison.path))
    elif comparison.field == FACT:
        if record.fact is not None:
            yield from list_json_values(find_at(asdict(record.fact), comparison.path))
    elif comparison.field == "tags":
        yield from map(fold, record.tags)
    elif comparison.field == STATE:
        yield record.state(now).value
    elif (value := getattr(record, comparison.field)) is not None:
        yield value


MISSING = object()


def find_at(value: object, path: tuple[str, ...]) -> object:
    """Return the value at a path of keys, or `MISSING`."""
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


def list_json_values(value: object) -> Iterator[object]:
    """Yield a value itself and, of a list, its elements; nothing if it is missing."""
    if value is not MISSING:
        yield value
    if isinstance(value, list):
        yield from value


def is_passing(found: object, op: str, value: Scalar) -> bool:
    """Return True if a value of a record passes a comparison with `value`."""
    if op == EXISTS:
        return True
    if found is None or value is None or isinstance(found, bool) or isinstance(value, bool):
        return op == EQUAL and found is value
    for types in (str, (int, float), datetime):
        if isinstance(found, types) and isinstance(value, types):
            return bool(found == value if op == EQUAL else ORDERINGS[op](found, value))
    return False
