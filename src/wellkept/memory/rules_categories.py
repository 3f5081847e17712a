"""Categories of episodes, and how long each category lives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType


class Category(StrEnum):
    """Category of an episode, which determines its lifetime."""

    ROUTINE = "routine"
    ERROR = "error"
    TASK_COMPLETION = "task_completion"
    DECISION = "decision"
    FACT = "fact"
    EXPLICIT = "explicit"


CATEGORY_ALIASES = {"approval": Category.DECISION, "failure": Category.ERROR}
"""Aliases that callers use for categories."""

_BY_NAME = {each.value: each for each in Category} | CATEGORY_ALIASES

Lifetimes = Mapping[Category, timedelta | None]
"""Lifetime of each category; None: unlimited."""


def make_lifetimes(
    *, routine: int = 7, error: int = 14, task_completion: int = 30, decision: int = 90, fact: int = 0
) -> Lifetimes:
    """Return lifetimes of so many days each; 0 days mean unlimited, as "remember this" always is.

    >>> make_lifetimes(fact=365)[Category.FACT].days, make_lifetimes()[Category.EXPLICIT]
    (365, None)
    """
    days = {
        Category.ROUTINE: routine,
        Category.ERROR: error,
        Category.TASK_COMPLETION: task_completion,
        Category.DECISION: decision,
        Category.FACT: fact,
        Category.EXPLICIT: 0,
    }
    return MappingProxyType({category: timedelta(days=count) if count else None for category, count in days.items()})


LIFETIMES = make_lifetimes()
"""Default lifetimes."""


def find_category(name: str | None) -> Category | None:
    """Return the category that a caller's name refers to; None for custom names.

    >>> find_category("error"), find_category("approval"), find_category("gossip")
    (<Category.ERROR: 'error'>, <Category.DECISION: 'decision'>, None)
    """
    return None if name is None else _BY_NAME.get(name)
