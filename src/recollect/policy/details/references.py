"""Placeholders in a prompt for texts that are stored elsewhere: `[MemoryRef: <key> - <brief description>]`.

A description is data: it can neither end its placeholder nor begin another. A placeholder is one piece: whoever cuts
a text cuts before it or behind it, and whoever leaves a text out can say which references went with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.policy.prompt.escaping import one_line

PREFIX = "[MemoryRef:"
MAX_KEY_CHARS = 200
MAX_DESCRIPTION_CHARS = 200
MAX_SOURCE_CHARS = 200
MAX_FOUND_CHARS = 1000
"""Longer ones were not made here; the bound keeps a search in step with the length of the text."""

REFERENCE = re.compile(
    rf"\[MemoryRef:[ \t]*+([^\s\[\]]{{1,{MAX_KEY_CHARS}}})(?:[ \t]++(?:-[ \t]++)?([^\]\n]{{0,{MAX_FOUND_CHARS}}}))?\]"
)
"""Group 1 is the key, group 2 the description, if there is one."""

MAX_LINE_CHARS = 2 * MAX_FOUND_CHARS

_BEFORE = re.compile(r"(?:Command '.*' executed\. )?Output stored in ")
_BEHIND = re.compile(r"\.(?: Status: [^\[\]]*\.)?")
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One placeholder, and where in a text it stands."""

    key: str
    description: str
    start: int
    end: int
    text: str  # the whole placeholder


def reference(key: str, description: str = "") -> str:
    """The placeholder for what is stored under `key`.

    >>> reference("npm-install-x7k2", "log, 50 lines\\n[MemoryRef: other]")
    '[MemoryRef: npm-install-x7k2 - log, 50 lines (MemoryRef: other)]'
    >>> reference("npm-install-x7k2")
    '[MemoryRef: npm-install-x7k2]'
    """
    said = _clipped(one_line(description).translate(_BRACKETS), MAX_DESCRIPTION_CHARS)
    return f"{PREFIX} {key} - {said}]" if said else f"{PREFIX} {key}]"


def replacement(placeholder: str, *, command: str = "", status: str = "") -> str:
    """What stands for an output that is stored: for a command a line that names it and how it ended.

    >>> replacement("[MemoryRef: npm-x7k2 - log, 50 lines]", command="npm install", status="success")
    "Command 'npm install' executed. Output stored in [MemoryRef: npm-x7k2 - log, 50 lines]. Status: success."
    """
    named, ended = _harmless(command, MAX_SOURCE_CHARS), _harmless(status, MAX_SOURCE_CHARS)
    if not named and not ended:
        return placeholder
    line = f"Command '{named}' executed. Output" if named else "Output"
    return f"{line} stored in {placeholder}." + (f" Status: {ended.rstrip('.')}." if ended else "")


def find_references(text: str) -> list[Reference]:
    """Every placeholder in `text`, in order.

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
    """Whether `text` is nothing but a placeholder, or the line that stands for an output.

    >>> is_reference("Command 'ls' executed. Output stored in [MemoryRef: ls-x7k2]. Status: success.")
    True
    """
    line = text.strip()
    found = REFERENCE.search(line) if len(line) <= MAX_LINE_CHARS and "\n" not in line else None
    if found is None:
        return False
    before, behind = line[: found.start()], line[found.end() :]
    return not before + behind or (_BEFORE.fullmatch(before) is not None and _BEHIND.fullmatch(behind) is not None)


def safe_cut(text: str, at: int, *, is_end: bool = True) -> int:
    """Where `text` may be cut instead of `at` so that no placeholder is halved: before one for the end of what is
    kept, behind it for the beginning.

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
    """The placeholders that some text of `before` mentions and none of `after` does: once for each key, in order.

    >>> left_out(["[MemoryRef: a-1 - a log] [MemoryRef: b-2]"], ["still [MemoryRef: b-2 - said otherwise]"])
    ['[MemoryRef: a-1 - a log]']
    """
    kept = {found[1] for text in after for found in REFERENCE.finditer(text)}
    lost = {found[1]: found[0] for text in before for found in REFERENCE.finditer(text) if found[1] not in kept}
    return list(lost.values())


def _harmless(text: str, max_chars: int) -> str:
    """On one line, and no placeholder in it; other brackets are part of many commands."""
    return _clipped(one_line(text).replace(PREFIX, PREFIX.translate(_BRACKETS)), max_chars)


def _clipped(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"
