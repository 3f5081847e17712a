"""Read texts in pieces, so that a big one is never in memory as a whole.

A text that comes from outside is read from any source; of a stored one, only the chunks that a part needs are
decompressed. A search (`grep`) takes time linear in the length of the text: its pattern is literal text and ignores
case; between slashes it is a regular expression, run by RE2, which does not backtrack, so no pattern can hang.
"""

from __future__ import annotations

import codecs
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from wellkept.arguments import RawText
from wellkept.deadline import check_deadline
from wellkept.details.rules_keys import PartRequest
from wellkept.errors import Invalid
from wellkept.language.text import replace_half_pairs
from wellkept.model import DetailPage
from wellkept.store.tables.details import Content

PIECE = 128 * 1024
"""Characters or bytes read at a time."""

Bytes = bytes | bytearray | memoryview
TextSource = RawText | Bytes | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[str] | Iterable[Bytes]
"""Text, path, open file or iterable of parts. Bytes are decoded as UTF-8."""


def iter_pieces(content: TextSource) -> Iterator[str]:
    """Yield the text in pieces. Invalid UTF-8 and halves of surrogate pairs become U+FFFD. Raises: Invalid."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in _raw_parts(content):
        if isinstance(piece, str):
            yield replace_half_pairs(piece)
        elif isinstance(piece, bytes | bytearray | memoryview):
            yield decoder.decode(bytes(piece))
        else:
            raise Invalid(f"A detail's content must be text or bytes, not {type(piece).__name__}.")
    if rest := decoder.decode(b"", True):
        yield rest


def _raw_parts(content: Any) -> Iterable[Any]:
    if isinstance(content, str):
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    if isinstance(content, bytes | bytearray | memoryview):
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    if isinstance(content, os.PathLike):
        return _read_file(Path(content))
    if hasattr(content, "read"):
        return iter(lambda: content.read(PIECE) or None, None)
    if isinstance(content, Iterable) and not isinstance(content, dict):
        return content
    raise Invalid(
        f"A detail's content must be a text, a path, an open file or parts of a text, not {type(content).__name__}."
    )


def _read_file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while part := file.read(PIECE):
                yield part
    except OSError as error:
        raise Invalid(f"The file {path} cannot be read: {error.strerror or error}.") from error


KEPT_CHUNKS = 3
"""Number of chunks that one read keeps in memory."""

_BREAK = re.compile("\n")


class StoredText:
    """Stored text with access by character offset and by line."""

    def __init__(self, content: Content) -> None:
        self.chars = content.chars
        self.lines = content.lines
        self.chunks = len(content.newlines)
        self.chunk_chars = content.chunk_chars
        self._newlines = content.newlines
        self.chunk: Callable[[int], str] = lru_cache(maxsize=KEPT_CHUNKS)(content.chunk)
        self._breaks: Callable[[int], Sequence[int]] = lru_cache(maxsize=KEPT_CHUNKS)(partial(_find_breaks, self.chunk))

    def between(self, start: int, stop: int) -> str:
        """Return the characters from `start` up to, but not including, `stop`."""
        stop = min(stop, self.chars)
        if start >= stop:
            return ""
        first, last = start // self.chunk_chars, (stop - 1) // self.chunk_chars
        parts = [self.chunk(position) for position in range(first, last + 1)]
        parts[-1] = parts[-1][: stop - last * self.chunk_chars]
        parts[0] = parts[0][start - first * self.chunk_chars :]
        return "".join(parts)

    def line_start(self, line: int) -> int:
        """Return the offset at which a line starts, counted from 1; after the last line, the end of the text."""
        if line <= 1:
            return 0
        if line > self.lines:
            return self.chars
        # The line starts after line break number `line - 1`; the chunks before its chunk contain fewer line breaks.
        position = bisect_left(self._newlines, line - 1) - 1
        return position * self.chunk_chars + self._breaks(position)[line - 2 - self._newlines[position]] + 1

    def line_at(self, offset: int) -> int:
        """Return the number of the line that contains the character at `offset`."""
        if not self.chars:
            return 1
        position = min(offset, self.chars - 1) // self.chunk_chars
        before = self.chunk(position).count("\n", 0, offset - position * self.chunk_chars)
        return self._newlines[position] + before + 1


def _find_breaks(chunk: Callable[[int], str], position: int) -> Sequence[int]:
    """Return the positions of the line breaks of a chunk."""
    return array("I", (match.start() for match in _BREAK.finditer(chunk(position))))


def read_page(key: str, text: StoredText, part: PartRequest) -> DetailPage:
    """Return a page that starts at a character offset."""
    start = min(part.offset, text.chars)
    return _make_page(key, text, start, min(start + part.limit, text.chars))


def read_lines(key: str, text: StoredText, part: PartRequest) -> DetailPage:
    """Return a range of lines, the first lines or the last lines."""
    if part.tail is not None:
        return _read_tail(key, text, part.tail, part.limit)
    first, last = part.lines or (1, part.head)
    start = text.line_start(first)
    end = text.chars if last is None else text.line_start(last + 1)
    stop = min(end, start + part.limit)
    if stop < end and (at := text.between(start, stop).rfind("\n")) >= 0:
        # Return whole lines if at least one fits.
        stop = start + at + 1
    rest = None
    if stop < end:
        next_line = text.line_at(stop)
        last_line = "" if last is None else min(last, text.lines)
        rest = f'Not all of these lines fit; go on with lines="{next_line}-{last_line}" or offset={stop}.'
    return _make_page(key, text, start, stop, rest=rest)


def _read_tail(key: str, text: StoredText, count: int, limit: int) -> DetailPage:
    first = text.line_start(max(1, text.lines - count + 1))
    start = max(first, text.chars - limit)
    # Return whole lines if at least one fits.
    if start > first and (at := text.between(start, text.chars - 1).find("\n")) >= 0:
        start += at + 1
    return _make_page(key, text, start, text.chars)


def _make_page(key: str, text: StoredText, start: int, stop: int, *, rest: str | None = None) -> DetailPage:
    content = text.between(start, stop)
    first = text.line_at(start) if content else None
    last = text.line_at(stop - 1) if content else None
    next_offset = stop if stop < text.chars else None
    return DetailPage(
        key=key,
        content=content,
        offset=start,
        total=text.chars,
        next_offset=next_offset,
        first_line=first,
        last_line=last,
        total_lines=text.lines,
        remaining=rest or _describe_rest(text, start, stop),
    )


def _describe_rest(text: StoredText, start: int, stop: int) -> str:
    if start >= text.chars:
        lines = f"{text.lines:,} line{'' if text.lines == 1 else 's'}"
        return f"There is no text at this offset: the text has {text.chars:,} characters in {lines}."
    before = f"{start:,} characters come before it (offset=0)" if start else ""
    after = f"{text.chars - stop:,} characters follow; go on with offset={stop}" if stop < text.chars else ""
    if not before and not after:
        return "This is all of it."
    sentence = " and ".join(each for each in (before, after) if each)
    return f"{sentence[0].upper()}{sentence[1:]}. Also: lines=, head=, tail=, grep=, json_path=."


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
        remaining=_describe_matches(output.matches, next_offset, is_literal=is_literal),
    )


def _describe_matches(matches: int, next_offset: int | None, *, is_literal: bool) -> str:
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
