"""The shape of a setting: a line of the table in the documentation, and how every source matches and checks it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

HIGHEST = 1_000_000_000
"""The largest number a setting may have unless it says another: every engine and every timer can do with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting: a line of the table in the documentation, and how every source matches and checks it."""

    name: str
    default: str
    meaning: str
    aliases: tuple[str, ...]
    environment: tuple[str, ...]  # the first one that is set wins
    kind: object  # the annotated type
    is_secret: bool
    low: float
    high: float


def setting(
    default: T,
    meaning: str,
    *,
    aliases: tuple[str, ...] = (),
    environment: tuple[str, ...] = (),
    is_secret: bool = False,
    low: float = -math.inf,
    high: float = HIGHEST,
) -> T:
    """A field of `Settings`; `low` and `high` are the smallest and the largest number allowed."""
    words = {"meaning": meaning, "aliases": aliases, "environment": environment}
    return field(default=default, metadata=words | {"is_secret": is_secret, "low": low, "high": high})
