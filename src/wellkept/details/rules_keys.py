"""Validate keys and fields of details, and parse which part of a text is requested.

Placeholders in prompts for stored texts: `[MemoryRef: <key> - <brief description>]`.

A description is data: it can neither end its placeholder nor start another. Placeholders are atomic: texts are cut
before or after them, and `left_out` tells which references a shortened text lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.values import check_whole, copy_json
from wellkept.prompt.rules_escaping import to_one_line

PREFIX = "[MemoryRef:"
MAX_KEY_CHARS = 200
MAX_QUOTED_CHARS = 200
MAX_SOURCE_CHARS = 200
MAX_FOUND_CHARS = 1000
"""Maximum length of a description that is recognised; the bound keeps the search linear."""

REFERENCE = re.compile(
    rf"\[MemoryRef:[ \t]*+([^\s\[\]]{{1,{MAX_KEY_CHARS}}})(?:[ \t]++(?:-[ \t]++)?([^\]\n]{{0,{MAX_FOUND_CHARS}}}))?\]"
)
"""Pattern of a placeholder; group 1 is the key, group 2 the optional description."""

MAX_LINE_CHARS = 2 * MAX_FOUND_CHARS

_BEFORE = re.compile(r"(?:Command '.*' executed\. )?Logs stored in ")
_AFTER = re.compile(r"\.(?: Status: [^\[\]]*\.)?")
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One placeholder and its position in a text."""

    key: str
    description: str
    start: int
    end: int
    text: str  # the whole placeholder


def reference(key: str, description: str = "") -> str:
    """Build the placeholder for what is stored under `key`.

    >>> reference("npm-install-x7k2", "log, 50 lines\\n[MemoryRef: other]")
    '[MemoryRef: npm-install-x7k2 - log, 50 lines (MemoryRef: other)]'
    >>> reference("npm-install-x7k2")
    '[MemoryRef: npm-install-x7k2]'
    """
    clean = _clip(to_one_line(description).translate(_BRACKETS), MAX_QUOTED_CHARS)
    return f"{PREFIX} {key} - {clean}]" if clean else f"{PREFIX} {key}]"


def format_replacement(placeholder: str, *, command: str = "", status: str = "") -> str:
    """Build the text that replaces a stored output; for a command it names the command and its status.

    >>> format_replacement("[MemoryRef: npm-x7k2 - log, 50 lines]", command="npm install", status="success")
    "Command 'npm install' executed. Logs stored in [MemoryRef: npm-x7k2 - log, 50 lines]. Status: success."
    """
    clean_command, clean_status = _defuse(command, MAX_SOURCE_CHARS), _defuse(status, MAX_SOURCE_CHARS)
    if not clean_command and not clean_status:
        return placeholder
    line = f"Command '{clean_command}' executed. Logs" if clean_command else "Logs"
    return f"{line} stored in {placeholder}." + (f" Status: {clean_status.rstrip('.')}." if clean_status else "")


def find_references(text: str) -> list[Reference]:
    """Find every placeholder in `text`, in order.

    >>> [(each.key, each.description) for each in find_references("See [MemoryRef: a-1 - a log] and [MemoryRef: b-2].")]
    [('a-1', 'a log'), ('b-2', '')]
    """
    return [
        Reference(
            key=found[1], description=(found[2] or "").strip(), start=found.start(), end=found.end(), text=found[0]
        )
        for found in REFERENCE.finditer(text)
    ]


def is_reference(text: str) -> bool:
    """Return True if `text` is nothing but a placeholder or the line that replaces an output.

    >>> is_reference("Command 'ls' executed. Logs stored in [MemoryRef: ls-x7k2]. Status: success.")
    True
    """
    line = text.strip()
    found = REFERENCE.search(line) if len(line) <= MAX_LINE_CHARS and "\n" not in line else None
    if found is None:
        return False
    before, after = line[: found.start()], line[found.end() :]
    return not before + after or (_BEFORE.fullmatch(before) is not None and _AFTER.fullmatch(after) is not None)


def safe_cut(text: str, at: int, *, is_end: bool = True) -> int:
    """Return the position nearest to `at` where `text` can be cut without splitting a placeholder.

    The position is before the placeholder if `is_end` (the cut ends the kept text), otherwise after it.

    >>> text = "See [MemoryRef: a-1 - a log]."
    >>> text[: safe_cut(text, 10)], text[safe_cut(text, 10, is_end=False) :]
    ('See ', '.')
    """
    if not 0 < at < len(text):
        return min(max(at, 0), len(text))
    start = text.rfind(PREFIX, 0, at + len(PREFIX) - 1)
    found = REFERENCE.match(text, start) if 0 <= start < at else None
    if found is None or found.end() <= at:
        return at
    return start if is_end else found.end()


def left_out(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return the placeholders mentioned in `before` but not in `after`, one per key, in order.

    >>> left_out(["[MemoryRef: a-1 - a log] [MemoryRef: b-2]"], ["still [MemoryRef: b-2 - said otherwise]"])
    ['[MemoryRef: a-1 - a log]']
    """
    kept = {found[1] for text in after for found in REFERENCE.finditer(text)}
    lost = {found[1]: found[0] for text in before for found in REFERENCE.finditer(text) if found[1] not in kept}
    return list(lost.values())


def _defuse(text: str, max_chars: int) -> str:
    """Put a text on one line and defuse placeholders in it; other brackets are common in commands."""
    return _clip(to_one_line(text).replace(PREFIX, PREFIX.translate(_BRACKETS)), max_chars)


def _clip(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


MAX_DESCRIPTION_CHARS = 500
MAX_METADATA_BYTES = 10_000
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
    copied: dict[str, Any] = copy_json(dict(metadata), "Metadata", what="metadata", most=MAX_METADATA_BYTES)
    return copied


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
