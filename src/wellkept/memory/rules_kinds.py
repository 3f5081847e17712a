"""Rules of the five kinds of memory, and checks of the fields of memories and agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypedDict, TypeVar

from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import check_categories
from wellkept.language.text import check_text
from wellkept.language.values import copy_json
from wellkept.memory.rules_lifetime import JOURNAL_WINDOW
from wellkept.model import Kind

MAX_NAME_CHARS = 200
MAX_NAMED_CHARS = 16
"""Longest word that an error quotes: a longer one is no typo, and errors end up in logs."""

MAX_TAGS = 5
MAX_TAG_CHARS = 64
MAX_METADATA_BYTES = 8192
Choice = TypeVar("Choice", bound=StrEnum)

BLANK = "Content cannot be blank"
NOT_AN_ITEM = "An item has a namespace, a key and a value instead of a text; write it with put."


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """Limits and defaults of one kind."""

    max_chars: int
    lifetime: timedelta | None = None  # None: unlimited, or decided by category
    importance: float = 0.5  # default


RULES: Mapping[Kind, KindRule] = {
    Kind.CORE: KindRule(max_chars=10_000, importance=1.0),
    Kind.JOURNAL: KindRule(max_chars=10_000, lifetime=JOURNAL_WINDOW),
    Kind.NOTE: KindRule(max_chars=500),
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
    copied: Mapping[str, Any] = copy_json(
        dict(metadata), "Metadata", what="metadata", most=MAX_METADATA_BYTES, parse_int=_check_integer
    )
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


def check_choice(choices: type[Choice], value: str | None, default: Choice) -> Choice:
    """Return the enum member named `value`, or the default. Raises: Invalid."""
    if value is None:
        return default
    try:
        return choices(value)
    except ValueError:
        # Do not quote a long value: it is no typo, may be anything, and error messages end up in logs.
        word, text = choices.__name__.lower(), str(value)
        named = f"{word} {text!r}" if len(text) <= MAX_NAMED_CHARS else f"such {word}"
        raise Invalid(f"There is no {named}; choose {', '.join(choices)}.") from None


def check_name(value: str | None, what: str) -> str | None:
    """Return a short name, or None. Raises: Invalid."""
    if value is None:
        return None
    if not check_text(value, what=what).strip() or len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise Invalid(f"A {what} is 1 to {MAX_NAME_CHARS} printable characters on one line.")
    return value


def check_moment(value: object, what: str) -> datetime:
    """Check a time and return it in UTC. Raises: Invalid."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Invalid(f"{what} must be a time with a zone, for example 2026-01-31T12:00:00Z.")
    # Keep a year to spare at both ends, for time zones and lifetimes.
    if not MINYEAR < value.year < MAXYEAR:
        raise Invalid(f"{what} must lie within the years {MINYEAR + 1} to {MAXYEAR - 1}.")
    return value.astimezone(UTC)


MAX_CHARS: Mapping[str, int] = {"name": 200, "system_prompt": 100_000, "model": 200, "colour": 40, "icon": 40}
MAX_TOOLS = 200
MAX_TOOL_CHARS = 128
FIELDS = (*MAX_CHARS, "tools", "knowledge_categories", "is_active")


class AgentFields(TypedDict, total=False):
    """Fields that can be set on an agent."""

    name: str
    system_prompt: str
    model: str
    tools: Sequence[str]
    knowledge_categories: Sequence[str]
    colour: str
    icon: str
    is_active: bool


def check_agent_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the fields of an agent. Raises: Invalid."""
    return {name: _check_field(name, value) for name, value in fields.items()}


def _check_field(name: str, value: Any) -> Any:
    if name == "is_active":
        return value
    if name == "tools":
        return _check_tools(value)
    if name == "knowledge_categories":
        return check_categories(value)
    if name not in MAX_CHARS:
        raise Invalid(f"An agent has no {name[:40]!r}; its fields are {', '.join(FIELDS)}.")
    text: str = value
    if len(text) > MAX_CHARS[name]:
        raise Invalid(f"The agent's {name} is too long (max {MAX_CHARS[name]:,} characters).")
    if name == "name" and not text.strip():
        raise Invalid("An agent's name cannot be blank.")
    return text


def _check_tools(value: Sequence[str]) -> tuple[str, ...]:
    if len(value) > MAX_TOOLS:
        raise Invalid(f"An agent's tools are a list of at most {MAX_TOOLS} names.")
    if any(not tool or len(tool) > MAX_TOOL_CHARS for tool in value):
        raise Invalid(f"A tool's name is 1 to {MAX_TOOL_CHARS} characters.")
    return tuple(value)
