"""What a detail may be called and said to be, and which part of its text is meant."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recollect.errors import Invalid
from recollect.policy.json_values import checked_json
from recollect.policy.numbers import checked_whole
from recollect.policy.text import checked_text

MAX_DESCRIPTION_CHARS = 500
MAX_METADATA_CHARS = 10_000
MAX_SESSION_CHARS = 200
MAX_SLUG_CHARS = 40
SUFFIX_CHARS = 8
SUFFIX_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without those that are read as one another. Eight of them are one of 850 thousand million."""

PAGE_CHARS = 4_000
PART_CHARS = 50_000
"""Of lines, matches and values, which were asked for by name."""

MAX_CHARS = 1_000_000
MAX_CONTEXT_LINES = 50
MAX_PATTERN_CHARS = 1_000

_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RANGE = re.compile(r"\s*([0-9]{1,15})\s*(-\s*([0-9]{1,15})?\s*)?")
_WORD = re.compile(r"[a-z0-9]+")


def slug(text: str) -> str:
    """The first words of `text` as they stand in a key; empty if it has none.

    >>> slug("npm install --save Éclair"), slug("日本語")
    ('npm-install-save-eclair', '')
    """
    plain = unicodedata.normalize("NFKD", text).casefold()
    words = _WORD.findall("".join(each for each in plain if not unicodedata.combining(each)))
    found = ""
    for word in words:
        longer = f"{found}-{word}" if found else word[:MAX_SLUG_CHARS]
        if len(longer) > MAX_SLUG_CHARS:
            break
        found = longer
    return found


def is_key(key: object) -> bool:
    """Whether a detail could have this key; any other is simply not found."""
    return isinstance(key, str) and len(key) <= 2 * MAX_SLUG_CHARS and _KEY.fullmatch(key) is not None


def checked_type(type: object) -> str:
    """Raises: Invalid."""
    if not isinstance(type, str) or not _TYPE.fullmatch(type):
        raise Invalid("A detail's type is a short word such as command_output, file_content or api_response.")
    return type


def checked_description(description: str) -> str:
    """On one line.

    Raises: Invalid.
    """
    line = " ".join(checked_text(description, what="description").split())
    if len(line) > MAX_DESCRIPTION_CHARS:
        raise Invalid(f"The description is too long (max {MAX_DESCRIPTION_CHARS} characters); say it in one sentence.")
    return line


def checked_session(session_id: str | None) -> str | None:
    """Raises: Invalid."""
    if session_id is None:
        return None
    text = checked_text(session_id, what="session_id")
    if not text.strip() or len(text) > MAX_SESSION_CHARS or not text.isprintable():
        raise Invalid(f"A session_id is 1 to {MAX_SESSION_CHARS} printable characters on one line.")
    return text


def checked_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy, as JSON has it.

    Raises: Invalid.
    """
    if metadata is None:
        return {}
    try:
        text = json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(
            'A detail\'s metadata are names with plain JSON values, such as {"source": "npm install", "exit_code": 0}.'
        ) from error
    if len(text) > MAX_METADATA_CHARS:
        raise Invalid(f"The metadata are too long (max {MAX_METADATA_CHARS:,} characters as JSON).")
    checked_json(metadata, what="metadata")
    copy: dict[str, Any] = json.loads(text)
    if "\\u0000" in text:
        raise Invalid("The metadata hold a NUL character (U+0000), which cannot be stored; remove it.")
    return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which part of a text is asked for: a page by default, or one of the others."""

    offset: int = 0
    limit: int
    lines: tuple[int, int | None] | None = None  # first and last; None: to the end
    head: int | None = None
    tail: int | None = None
    grep: str | None = None
    context: int = 2
    json_path: str | None = None


def checked_part(
    *,
    offset: int,
    limit: int | None,
    lines: str | None,
    head: int | None,
    tail: int | None,
    grep: str | None,
    context: int,
    json_path: str | None,
) -> Part:
    """Raises: Invalid."""
    ways = {"lines": lines, "head": head, "tail": tail, "grep": grep, "json_path": json_path}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise Invalid(f"Ask in one way at a time: {' or '.join(given)}, not both.")
    checked_whole(offset, "offset")
    if offset and given and given[0] not in ("grep", "json_path"):
        raise Invalid(f"Ask in one way at a time: offset or {given[0]}, not both.")
    most = limit if limit is not None else PART_CHARS if given else PAGE_CHARS
    return Part(
        offset=offset,
        limit=checked_whole(most, "limit", least=1, most=MAX_CHARS),
        lines=None if lines is None else line_range(lines),
        head=None if head is None else checked_whole(head, "head", least=1),
        tail=None if tail is None else checked_whole(tail, "tail", least=1),
        grep=None if grep is None else _checked_pattern(grep),
        context=checked_whole(context, "context", least=0, most=MAX_CONTEXT_LINES),
        json_path=None if json_path is None else checked_text(json_path, what="json_path"),
    )


def line_range(lines: str) -> tuple[int, int | None]:
    """The first and the last line meant; None: to the end.

    >>> line_range("120-180"), line_range("120"), line_range("120-")
    ((120, 180), (120, 120), (120, None))

    Raises: Invalid.
    """
    if match := _RANGE.fullmatch(checked_text(lines, what="lines")):
        first = int(match[1])
        last = first if match[2] is None else None if match[3] is None else int(match[3])
        if first >= 1 and (last is None or last >= first):
            return first, last
    raise Invalid('Name lines as "120-180", "120" or "120-" (to the end); the first line is 1.')


def _checked_pattern(pattern: str) -> str:
    if not checked_text(pattern, what="pattern") or len(pattern) > MAX_PATTERN_CHARS:
        raise Invalid(f"What to look for has 1 to {MAX_PATTERN_CHARS:,} characters.")
    return pattern
