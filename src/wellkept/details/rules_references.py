"""Placeholders in prompts for stored texts: `[MemoryRef: <key> - <brief description>]`.

A description is data: it can neither end its placeholder nor start another. Placeholders are atomic: texts are cut
before or after them, and `left_out` tells which references a shortened text lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wellkept.prompt.rules_escaping import to_one_line

PREFIX = "[MemoryRef:"
MAX_KEY_CHARS = 200
MAX_DESCRIPTION_CHARS = 200
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
    clean = _clip(to_one_line(description).translate(_BRACKETS), MAX_DESCRIPTION_CHARS)
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
