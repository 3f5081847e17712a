"""Text as commands print it: safe for terminals, times, JSON values.

Text from a store may come from anywhere. `safe` makes control characters visible before text reaches a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept.model import Json

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or reverse the direction of writing."""

HINT_CHARS = 80
"""Maximum length of a text in a hint; `show` prints all of it."""

CELL_CHARS = 240
"""Maximum length of a text in a table; `show` prints all of it."""

EMPTY = "-"
"""Placeholder for an empty field in a line of tab-separated fields."""


def safe(text: str) -> str:
    """Make control characters visible; keep line breaks and tabs.

    >>> safe("red \\x1b[31malert")
    'red \\\\x1b[31malert'
    """
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Join the text to one line that is safe to print.

    >>> one_line("one\\n\\n  two\\tthree")
    'one two three'
    """
    return safe(" ".join(text.split()))


def shorten(line: str, limit: int = CELL_CHARS) -> str:
    """Cut a line to `limit` characters.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def plain_time(time: datetime) -> str:
    """Format a time for a line of text: to the second, in UTC with Z."""
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def local_time(time: datetime) -> str:
    """Format a time for a table: to the minute, in local time."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "memory"), count(1200, "memory"), count(2, "text")
    ('1 memory', '1,200 memories', '2 texts')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def plain(value: object) -> str:
    """Format a value for a field of a line.

    >>> plain(("style", "code")), plain(None), plain("one\\ntwo"), plain(0.5)
    ('style,code', '-', 'one two', '0.5')
    """
    if isinstance(value, datetime):
        return plain_time(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        value = ",".join(map(str, value))
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    elif isinstance(value, float):
        value = f"{value:g}"
    return EMPTY if value is None else one_line(str(value)) or EMPTY


def json_record(record: Any) -> Json:
    """Convert a record to the JSON object that REST answers with: its public fields by their public names."""
    return {
        each.metadata.get("alias", each.name): json_value(getattr(record, each.name))
        for each in fields(record)
        if not each.metadata.get("exclude")
    }


def json_value(value: Any) -> Any:
    """Convert a value to JSON; times are in UTC with Z."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [json_value(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    return json_record(value) if is_dataclass(value) else value


def mark(is_ok: bool) -> str:
    """Return ✓ or ✗, or words when the output cannot encode them."""
    # There may be no standard output, or one in memory without an encoding.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        "✓✗".encode(encoding)
    except UnicodeEncodeError:
        return "ok" if is_ok else "!!"
    return "✓" if is_ok else "✗"
