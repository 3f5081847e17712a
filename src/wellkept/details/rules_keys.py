"""Validate keys and fields of details, and parse which part of a text is requested."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.json_values import check_storable
from wellkept.language.numbers import check_whole

MAX_DESCRIPTION_CHARS = 500
MAX_METADATA_CHARS = 10_000
MAX_SESSION_CHARS = 200
MAX_SLUG_CHARS = 40
SUFFIX_CHARS = 8
SUFFIX_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Characters of key suffixes, without lookalikes. Eight of them make about 850 billion suffixes."""

PAGE_CHARS = 4_000
PART_CHARS = 50_000
"""Default limit for lines, matches and values, which are requested explicitly."""

MAX_CHARS = 1_000_000
MAX_CONTEXT_LINES = 50
MAX_PATTERN_CHARS = 1_000

_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RANGE = re.compile(r"\s*([0-9]{1,15})\s*(-\s*([0-9]{1,15})?\s*)?")
_WORD = re.compile(r"[a-z0-9]+")


def slug(text: str) -> str:
    """Turn the first words of `text` into the start of a key; empty if it has no usable words.

    >>> slug("npm install --save Éclair"), slug("日本語")
    ('npm-install-save-eclair', '')
    """
    plain = unicodedata.normalize("NFKD", text).casefold()
    words = _WORD.findall("".join(each for each in plain if not unicodedata.combining(each)))
    result = ""
    for word in words:
        longer = f"{result}-{word}" if result else word[:MAX_SLUG_CHARS]
        if len(longer) > MAX_SLUG_CHARS:
            break
        result = longer
    return result


def is_key(key: object) -> bool:
    """Return True if a detail could have this key."""
    return isinstance(key, str) and len(key) <= 2 * MAX_SLUG_CHARS and _KEY.fullmatch(key) is not None


def check_type(type: str) -> str:
    """Validate the type of a detail. Raises: Invalid."""
    if not _TYPE.fullmatch(type):
        raise Invalid("A detail's type is a short word such as command_output, file_content or api_response.")
    return type


def check_description(description: str) -> str:
    """Validate a description and put it on one line. Raises: Invalid."""
    line = " ".join(description.split())
    if len(line) > MAX_DESCRIPTION_CHARS:
        raise Invalid(f"The description is too long (max {MAX_DESCRIPTION_CHARS} characters); say it in one sentence.")
    return line


def check_detail_session(session_id: str | None) -> str | None:
    """Validate the session of a detail. Raises: Invalid."""
    if session_id is None:
        return None
    if not session_id.strip() or len(session_id) > MAX_SESSION_CHARS or not session_id.isprintable():
        raise Invalid(f"A session_id is 1 to {MAX_SESSION_CHARS} printable characters on one line.")
    return session_id


def check_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Validate metadata and return a copy with JSON types. Raises: Invalid."""
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
    check_storable(metadata, what="metadata")
    copy: dict[str, Any] = json.loads(text)
    return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRequest:
    """Requested part of a text: a page by default, or exactly one of the alternatives."""

    offset: int = 0
    limit: int
    lines: tuple[int, int | None] | None = None  # first and last; a last of None means to the end
    head: int | None = None
    tail: int | None = None
    grep: str | None = None
    context: int = 2
    json_path: str | None = None


def parse_part(
    *,
    offset: int,
    limit: int | None,
    lines: str | None,
    head: int | None,
    tail: int | None,
    grep: str | None,
    context: int,
    json_path: str | None,
) -> PartRequest:
    """Parse a request for a part of a text. Raises: Invalid."""
    selectors = {"lines": lines, "head": head, "tail": tail, "grep": grep, "json_path": json_path}
    used = [name for name, value in selectors.items() if value is not None]
    if len(used) > 1:
        raise Invalid(f"Ask in one way at a time: {' or '.join(used)}, not both.")
    check_whole(offset, "offset")
    if offset and used and used[0] not in ("grep", "json_path"):
        raise Invalid(f"Ask in one way at a time: offset or {used[0]}, not both.")
    most = limit if limit is not None else PART_CHARS if used else PAGE_CHARS
    return PartRequest(
        offset=offset,
        limit=check_whole(most, "limit", least=1, most=MAX_CHARS),
        lines=None if lines is None else parse_line_range(lines),
        head=None if head is None else check_whole(head, "head", least=1),
        tail=None if tail is None else check_whole(tail, "tail", least=1),
        grep=None if grep is None else _check_pattern(grep),
        context=check_whole(context, "context", least=0, most=MAX_CONTEXT_LINES),
        json_path=json_path,
    )


def parse_line_range(lines: str) -> tuple[int, int | None]:
    """Parse the first and last line of a range; None: to the end.

    >>> parse_line_range("120-180"), parse_line_range("120"), parse_line_range("120-")
    ((120, 180), (120, 120), (120, None))

    Raises: Invalid.
    """
    if match := _RANGE.fullmatch(lines):
        first = int(match[1])
        last = first if match[2] is None else None if match[3] is None else int(match[3])
        if first >= 1 and (last is None or last >= first):
            return first, last
    raise Invalid('Name lines as "120-180", "120" or "120-" (to the end); the first line is 1.')


def _check_pattern(pattern: str) -> str:
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        raise Invalid(f"The search pattern must have 1 to {MAX_PATTERN_CHARS:,} characters.")
    return pattern
