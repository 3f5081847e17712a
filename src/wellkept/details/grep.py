"""Search a stored text for lines, chunk by chunk, in time linear in the length of the text.

A pattern is literal text and ignores case; between slashes it is a regular expression, run by RE2, which does not
backtrack, so no pattern can hang. Matches are located as long as the answer has room for them, and rendered with the
lines around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from wellkept.deadline import check_deadline
from wellkept.details.parts import StoredText
from wellkept.details.rules_keys import PartRequest
from wellkept.errors import Invalid
from wellkept.model import DetailPage

MAX_LINE_CHARS = 400
"""Maximum characters of a rendered line; of a longer one, the part around the match is rendered."""

LONG_LINE_CHARS = 256 * 1024
"""Maximum length of a line that is searched as a whole; a longer one is searched in parts."""

CARRIED_CHARS = 4 * 1024
"""Overlap between parts of a long line; a longer match across the border of two parts is missed."""

MAX_MATCHES = 1_000
GAP = "--\n"


@dataclass(frozen=True, slots=True)
class _Place:
    """Line and offset of a match."""

    line: int
    offset: int


def read_matches(key: str, text: StoredText, part: PartRequest) -> DetailPage:
    """Return the matching lines, numbered, with the lines around them. Raises: Invalid."""
    assert part.grep is not None
    pattern, is_literal = _compile(part.grep)
    start = min(part.offset, text.chars)
    output, next_offset = _Output(text, part.context, part.limit), None
    for place in _find_places(text, pattern, start):
        if not output.add(place):
            next_offset = place.offset
            break
    else:
        output.end()
    return DetailPage(
        key=key,
        content=output.content,
        offset=start,
        total=text.chars,
        next_offset=next_offset,
        total_lines=text.lines,
        matches=output.matches,
        remaining=_describe_rest(output.matches, next_offset, is_literal=is_literal),
    )


def _describe_rest(matches: int, next_offset: int | None, *, is_literal: bool) -> str:
    found = f"{matches:,} {'match' if matches == 1 else 'matches'}"
    if next_offset is not None:
        return f"{found} so far; there are more: ask for the same with offset={next_offset}."
    if matches or not is_literal:
        return f"{found}; there are no more."
    return "No match for this literal text. Write a regular expression between slashes: /error|warn/."


def _compile(pattern: str) -> tuple[Any, bool]:
    """Compile a pattern; return it and True if it is literal text. Raises: Invalid."""
    re2 = import_module("re2")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    is_literal = not (len(pattern) > 2 and pattern[0] == pattern[-1] == "/")
    expression = re2.escape(pattern) if is_literal else f"(?m){pattern[1:-1]}"
    try:
        return re2.compile(expression, options), is_literal
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error.args[0]
        raise Invalid(
            f"RE2 cannot compile this regular expression ({reason}); leave the slashes off to search for plain text."
        ) from error


def _find_places(text: StoredText, pattern: Any, start: int) -> Iterator[_Place]:
    """Yield each matching line once; in long lines, each match that is not close to the previous one."""
    # Offsets of the start of the window, of the next position to search, and of the last match.
    base = resume = found = start
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
                # An empty match at the start of the next line.
                break
            line += window.count("\n", counted, at)
            counted = at
            found = base + at
            yield _Place(line, found)
            check_deadline()
            resume = base + _skip_match(window, at)
            if resume - base > cut:
                break
        keep = cut if whole_lines else max(0, len(window) - CARRIED_CHARS)
        line += window.count("\n", counted, keep)
        carried, base = window[keep:], base + keep


def _next_line(window: str, found: int, resume: int) -> int:
    """Return where to resume: after the line of the last match if its end is in the window, else at `resume`."""
    end = window.find("\n", max(0, found), max(0, resume))
    return end + 1 if end >= 0 else resume


def _skip_match(window: str, at: int) -> int:
    """Return where to resume after a match: in the next line, or after the rendered part of a long line."""
    end = window.find("\n", at, at + MAX_LINE_CHARS)
    return end + 1 if end >= 0 else at + MAX_LINE_CHARS


class _Output:
    """Output in the format of grep: `12:` before a matching line, `13-` before a context line, `--` at gaps."""

    def __init__(self, text: StoredText, context: int, limit: int) -> None:
        self.matches = 0
        self._text = text
        self._context = context
        self._room = limit
        self._parts: list[str] = []
        # Numbers of the last rendered and of the last matching line.
        self._rendered = 0
        self._matched = 0

    @property
    def content(self) -> str:
        return "".join(self._parts)

    def add(self, place: _Place) -> bool:
        """Add a match with its context; return False if there is no room."""
        parts = self._context_after(place.line - 1)
        last_rendered = self._rendered + len(parts)
        first = min(max(last_rendered + 1, place.line - self._context), place.line)
        if self._context and self._matched and first > last_rendered + 1:
            parts.append(GAP)
        parts += [self._render_line(number, "-") for number in range(first, place.line)]
        parts.append(self._render_line(place.line, ":", place.offset))
        if self.matches >= MAX_MATCHES or (self.matches and sum(map(len, parts)) > self._room):
            return False
        self._append(parts)
        self._rendered = self._matched = place.line
        self.matches += 1
        return True

    def end(self) -> None:
        """Add the context after the last match, as far as there is room."""
        self._append(self._context_after(self._text.lines))

    def _context_after(self, last: int) -> list[str]:
        """Render the context lines after the last match, up to line `last`."""
        if not self._matched:
            return []
        until = min(self._matched + self._context, last)
        return [self._render_line(number, "-") for number in range(self._rendered + 1, until + 1)]

    def _append(self, parts: list[str]) -> None:
        for part in parts:
            self._parts.append(part[: self._room])
            self._room -= len(self._parts[-1])

    def _render_line(self, number: int, mark: str, offset: int | None = None) -> str:
        start = self._text.line_start(number)
        # Begin a quarter of the width before the match, so that most of the context follows it.
        at = start if offset is None else max(start, offset - MAX_LINE_CHARS // 4)
        piece = self._text.between(at, at + MAX_LINE_CHARS + 1)
        line, ended, _ = piece.partition("\n")
        is_cut = not ended and len(line) > MAX_LINE_CHARS
        before = "…" if at > start else ""
        return f"{number}{mark}{before}{line[:MAX_LINE_CHARS]}{f'… (offset={at})' if is_cut or before else ''}\n"
