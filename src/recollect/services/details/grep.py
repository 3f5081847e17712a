"""Looking for lines in a stored text, chunk by chunk, in time that grows with the text and nothing else.

What is looked for is taken as it stands, ignoring case; between slashes it is a regular expression, which RE2 runs: it
has no backtracking, so no pattern can hang whoever asks. First the places are found, as far as the answer has room for
them; then each is shown with the lines around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from recollect.deadline import check_deadline
from recollect.errors import Invalid
from recollect.model import DetailPage
from recollect.policy.details.keys import Part
from recollect.services.details.parts import Text

MAX_LINE_CHARS = 400
"""Of a shown line; of a longer one the surroundings of the match are shown."""

LONG_LINE_CHARS = 256 * 1024
"""A line is looked at as a whole up to this length, then part by part."""

CARRIED_CHARS = 4 * 1024
"""Of a part of such a line, seen once more with its next part: a longer match across that border is missed."""

MAX_MATCHES = 1_000
GAP = "--\n"


@dataclass(frozen=True, slots=True)
class _Place:
    """A match: in which line, and where in the text."""

    line: int
    offset: int


def read_matches(key: str, text: Text, part: Part) -> DetailPage:
    """The lines that match, numbered, with the lines around them.

    Raises: Invalid.
    """
    assert part.grep is not None
    pattern, is_literal = _compiled(part.grep)
    start = min(part.offset, text.chars)
    sheet, next_offset = _Sheet(text, part.context, part.limit), None
    for place in _places(text, pattern, start):
        if not sheet.add(place):
            next_offset = place.offset
            break
    else:
        sheet.end()
    return DetailPage(
        key=key,
        content=sheet.content,
        offset=start,
        total=text.chars,
        next_offset=next_offset,
        total_lines=text.lines,
        matches=sheet.matches,
        remaining=_remaining(sheet.matches, next_offset, is_literal=is_literal),
    )


def _remaining(matches: int, next_offset: int | None, *, is_literal: bool) -> str:
    found = f"{matches:,} {'match' if matches == 1 else 'matches'}"
    if next_offset is not None:
        return f"{found} so far; there are more: ask for the same with offset={next_offset}."
    if matches or not is_literal:
        return f"{found}; there are no more."
    return "No match. It was looked for as it stands; a regular expression is written between slashes: /error|warn/."


def _compiled(pattern: str) -> tuple[Any, bool]:
    """What to look for, and whether it is meant as it stands.

    Raises: Invalid.
    """
    re2 = import_module("re2")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    is_literal = not (len(pattern) > 2 and pattern[0] == pattern[-1] == "/")
    expression = re2.escape(pattern) if is_literal else f"(?m){pattern[1:-1]}"
    try:
        return re2.compile(expression, options), is_literal
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error.args[0]
        raise Invalid(f"This is no regular expression as RE2 knows them ({said}); leave the slashes off.") from error


def _places(text: Text, pattern: Any, start: int) -> Iterator[_Place]:
    """Every line that matches, once; of long lines every match that is not near the one before."""
    base = resume = found = start  # where the window begins, where to look on, where the last match was
    line, carried = text.line_at(start), ""
    for position in range(start // text.chunk_chars, text.chunks):
        check_deadline()
        window = carried + text.chunk(position)[max(0, start - position * text.chunk_chars) :]
        is_last = position == text.chunks - 1
        whole_lines = window.rfind("\n") + 1
        if not whole_lines and not is_last and len(window) < LONG_LINE_CHARS:
            carried = window
            continue
        resume = _next_line(window, found - base, resume - base) + base
        cut = len(window) if is_last or not whole_lines else whole_lines
        counted = 0
        while match := pattern.search(window, max(0, resume - base), cut):
            at = match.start()
            if at == cut and window.endswith("\n", 0, cut):
                break  # an empty match, in front of the next line
            line += window.count("\n", counted, at)
            counted = at
            found = base + at
            yield _Place(line, found)
            check_deadline()
            resume = base + _behind(window, at)
            if resume - base > cut:
                break
        keep = cut if whole_lines else max(0, len(window) - CARRIED_CHARS)
        line += window.count("\n", counted, keep)
        carried, base = window[keep:], base + keep


def _next_line(window: str, found: int, resume: int) -> int:
    """Where to look on, if not before: the line of the last match may have ended since."""
    end = window.find("\n", max(0, found), max(0, resume))
    return end + 1 if end >= 0 else resume


def _behind(window: str, at: int) -> int:
    """Where to look on after a match: in the next line, or in a long line behind what is shown of it."""
    end = window.find("\n", at, at + MAX_LINE_CHARS)
    return end + 1 if end >= 0 else at + MAX_LINE_CHARS


class _Sheet:
    """What is shown, as grep does: `12:` before a line that matches, `13-` before one around it, `--` at gaps."""

    def __init__(self, text: Text, context: int, limit: int) -> None:
        self.matches = 0
        self._text = text
        self._context = context
        self._room = limit
        self._parts: list[str] = []
        self._shown = 0  # the last line that is
        self._matched = 0

    @property
    def content(self) -> str:
        return "".join(self._parts)

    def add(self, place: _Place) -> bool:
        """False if there is no room for it."""
        parts = self._after(place.line - 1)
        shown = self._shown + len(parts)
        first = min(max(shown + 1, place.line - self._context), place.line)
        if self._context and self._matched and first > shown + 1:
            parts.append(GAP)
        parts += [self._line(number, "-") for number in range(first, place.line)]
        parts.append(self._line(place.line, ":", place.offset))
        if self.matches >= MAX_MATCHES or (self.matches and sum(map(len, parts)) > self._room):
            return False
        self._put(parts)
        self._shown = self._matched = place.line
        self.matches += 1
        return True

    def end(self) -> None:
        """The lines after the last match, as far as there is room."""
        self._put(self._after(self._text.lines))

    def _after(self, last: int) -> list[str]:
        if not self._matched:
            return []
        until = min(self._matched + self._context, last)
        return [self._line(number, "-") for number in range(self._shown + 1, until + 1)]

    def _put(self, parts: list[str]) -> None:
        for part in parts:
            self._parts.append(part[: self._room])
            self._room -= len(self._parts[-1])

    def _line(self, number: int, mark: str, offset: int | None = None) -> str:
        start = self._text.line_start(number)
        at = start if offset is None else max(start, offset - MAX_LINE_CHARS // 4)
        piece = self._text.between(at, at + MAX_LINE_CHARS + 1)
        line, ended, _ = piece.partition("\n")
        is_cut = not ended and len(line) > MAX_LINE_CHARS
        before = "…" if at > start else ""
        return f"{number}{mark}{before}{line[:MAX_LINE_CHARS]}{f'… (offset={at})' if is_cut or before else ''}\n"
