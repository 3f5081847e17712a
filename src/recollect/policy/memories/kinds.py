"""The four kinds of memory: one table of rules, and the checks that read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import Invalid
from recollect.model import Kind
from recollect.policy.memories.lifetime import JOURNAL_WINDOW
from recollect.policy.text import checked_text

MAX_TAGS = 5
MAX_TAG_CHARS = 64
BLANK = "Content cannot be blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one kind allows."""

    max_chars: int
    max_count: int | None = None  # per agent; the oldest make room. None: no limit
    lifetime: timedelta | None = None  # None: for ever, or decided by category
    importance: float = 0.5  # when the caller gives none


RULES: Mapping[Kind, Rule] = {
    Kind.CORE: Rule(max_chars=10_000, importance=1.0),
    Kind.JOURNAL: Rule(max_chars=10_000, lifetime=JOURNAL_WINDOW),
    Kind.NOTE: Rule(max_chars=500, max_count=500),
    Kind.EPISODE: Rule(max_chars=10_000),
}


UNIQUE = (Kind.NOTE, Kind.CORE)
"""Kinds in which the same thing said twice is one memory; a journal or an episode may well repeat itself."""


def checked_kind(kind: str) -> Kind:
    """Raises: Invalid."""
    try:
        return Kind(kind)
    except ValueError:
        raise Invalid(f"There is no kind {str(kind)[:40]!r}; the kinds are {', '.join(Kind)}.") from None


def checked_content(text: str, kind: Kind) -> str:
    """`text`, trimmed, if a memory of this kind may hold it.

    Raises: Invalid.
    """
    content = checked_text(text).strip()
    if not content:  # real conversations hold turns of nothing but a zero-width space: those are kept
        raise Invalid(BLANK)
    limit = RULES[kind].max_chars
    if len(content) > limit:
        raise Invalid(f"Content too long (max {limit:,} characters)")
    return content


def checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Trimmed tags without repeats, in the order given.

    Raises: Invalid.
    """
    if isinstance(tags, str):
        raise Invalid("Tags are a list of strings, not one string.")
    clean = tuple(dict.fromkeys(checked_text(tag, what="tag").strip() for tag in tags))
    if len(clean) > MAX_TAGS:
        raise Invalid(f"A memory has at most {MAX_TAGS} tags; {len(clean)} were given.")
    for tag in clean:
        if not tag or len(tag) > MAX_TAG_CHARS or not tag.isprintable():
            raise Invalid(f"A tag is 1 to {MAX_TAG_CHARS} printable characters on one line.")
    return clean


def checked_importance(importance: object) -> float:
    """Raises: Invalid."""
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise Invalid("Importance is a number from 0 to 1.")
    return float(importance)


def expiry(kind: Kind, now: datetime) -> datetime | None:
    """When a memory of this kind, written at `now`, stops being recalled; None: never."""
    lifetime = RULES[kind].lifetime
    return now + lifetime if lifetime is not None else None
