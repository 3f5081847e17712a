"""Rules of the five kinds of memory, and the checks that apply them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.text import check_text
from wellkept.language.values import check_storable
from wellkept.memory.rules_lifetime import JOURNAL_WINDOW
from wellkept.model import Kind

MAX_TAGS = 5
MAX_TAG_CHARS = 64
MAX_METADATA_BYTES = 8192
BLANK = "Content cannot be blank"
NOT_AN_ITEM = "An item has a namespace, a key and a value instead of a text; write it with put."


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """Limits and defaults of one kind."""

    max_chars: int
    max_count: int | None = None  # per agent; the oldest are evicted. None: unlimited
    lifetime: timedelta | None = None  # None: unlimited, or decided by category
    importance: float = 0.5  # default


RULES: Mapping[Kind, KindRule] = {
    Kind.CORE: KindRule(max_chars=10_000, importance=1.0),
    Kind.JOURNAL: KindRule(max_chars=10_000, lifetime=JOURNAL_WINDOW),
    Kind.NOTE: KindRule(max_chars=500, max_count=500),
    Kind.EPISODE: KindRule(max_chars=10_000),
    Kind.ITEM: KindRule(max_chars=10_000),
}


UNIQUE = (Kind.NOTE, Kind.CORE)
"""Kinds that merge duplicates; journal entries, episodes and items may repeat."""


def check_kind(kind: str) -> Kind:
    """Parse a kind.

    Raises: Invalid.
    """
    try:
        return Kind(kind)
    except ValueError:
        raise Invalid(f"There is no kind {str(kind)[:40]!r}; the kinds are {', '.join(Kind)}.") from None


def check_content(text: str, kind: Kind) -> str:
    """Validate and trim the text of a memory of this kind.

    Raises: Invalid; always for an item, whose text follows from its value.
    """
    if kind is Kind.ITEM:
        raise Invalid(NOT_AN_ITEM)
    content = check_text(text).strip()
    # Real conversations contain turns with only a zero-width space; those are kept.
    if not content:
        raise Invalid(BLANK)
    limit = RULES[kind].max_chars
    if len(content) > limit:
        raise Invalid(f"Content too long (max {limit:,} characters)")
    return content


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Trim tags and drop repeats, in the given order.

    Raises: Invalid.
    """
    if isinstance(tags, str):
        raise Invalid("Tags must be a list of strings, not one string.")
    trimmed = tuple(dict.fromkeys(check_text(tag, what="tag").strip() for tag in tags))
    if len(trimmed) > MAX_TAGS:
        raise Invalid(f"A memory has at most {MAX_TAGS} tags; {len(trimmed)} were given.")
    for tag in trimmed:
        if not tag or len(tag) > MAX_TAG_CHARS or not tag.isprintable():
            raise Invalid(f"A tag is 1 to {MAX_TAG_CHARS} printable characters on one line.")
    return trimmed


def check_importance(importance: object) -> float:
    """Validate an importance.

    Raises: Invalid.
    """
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise Invalid("Importance is a number from 0 to 1.")
    return float(importance)


def check_metadata(metadata: object) -> Mapping[str, Any]:
    """Validate metadata and return a copy of it, as JSON reads it.

    Raises: Invalid.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise Invalid('Metadata is a JSON object, such as {"city": "Oslo"}.')
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise Invalid(
            "Metadata may hold only what JSON knows: texts, finite numbers, true, false, null, lists and objects."
        ) from None
    check_storable(metadata, what="metadata")
    size = len(text.encode())
    if size > MAX_METADATA_BYTES:
        raise Invalid(f"Metadata is at most {MAX_METADATA_BYTES:,} bytes of JSON; this is {size:,}.")
    copied: Mapping[str, Any] = json.loads(text, parse_int=_check_integer)
    return copied


def _check_integer(digits: str) -> int:
    number = int(digits)
    if abs(number) >= 2**63:
        raise Invalid("A number in the metadata is too large; store numbers of more than 64 bits as texts.")
    return number


def expires_at(kind: Kind, now: datetime) -> datetime | None:
    """Return the time at which a memory of this kind, written at `now`, expires; None: never."""
    lifetime = RULES[kind].lifetime
    return now + lifetime if lifetime is not None else None
