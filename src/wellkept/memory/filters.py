"""Filters that callers name: a text of `memory`, and arguments for the most common conditions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from wellkept.language.text import fold
from wellkept.memory.drafts import check_choice, check_moment, check_name
from wellkept.memory.rules_filters import (
    EQUAL,
    Comparison,
    Condition,
    Not,
    Scalar,
    Where,
    join_conditions,
    names_field,
    parse_filter,
)
from wellkept.model import Kind, Origin, OriginName, Scope, ScopeName

NOT_ITEMS = Not(Comparison("kind", EQUAL, Kind.ITEM.value))


class MemoryFilters(TypedDict, total=False):
    """Filters of memories; a memory has to pass all of them."""

    where: Where
    tag: str  # a whole tag, ignoring case
    session_id: str | None
    scope: ScopeName | None
    origin: OriginName | None
    since: datetime | None  # written then or later
    until: datetime | None  # written before then


def check_filters(
    *,
    where: Where = None,
    tag: str = "",
    session_id: str | None = None,
    scope: str | None = None,
    origin: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Condition | None:
    """Return the condition that a memory meets if it passes all filters. Raises: Invalid."""
    folded = fold(tag.strip())
    named: list[tuple[str, str, Scalar]] = [
        ("tags", EQUAL, folded or None),
        ("session_id", EQUAL, check_name(session_id, "session_id")),
        ("scope", EQUAL, _check_choice(Scope, scope)),
        ("origin", EQUAL, _check_choice(Origin, origin)),
        ("created_at", ">=", None if since is None else check_moment(since, "since")),
        ("created_at", "<", None if until is None else check_moment(until, "until")),
    ]
    return join_conditions(parse_filter(where), *(Comparison(*each) for each in named if each[2] is not None))


def leave_out_items(where: Condition | None, kind: Kind | None) -> Condition | None:
    """Return the condition with which a listing leaves items out, unless it asks for a kind."""
    is_of_kind = kind is not None or names_field(where, "kind")
    return where if is_of_kind else join_conditions(NOT_ITEMS, where)


def _check_choice(choices: type[StrEnum], value: str | None) -> str | None:
    return None if value is None else check_choice(choices, value, next(iter(choices))).value
