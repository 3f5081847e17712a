"""Read a part of a stored text, decompressing only the chunks it needs."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

from wellkept.details.rules_keys import PartRequest
from wellkept.model import DetailPage
from wellkept.store.contents import Content

KEPT_CHUNKS = 3
"""Number of chunks that one read keeps in memory."""

_BREAK = re.compile("\n")


class _Chunk:
    """Chunk of a text in memory."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def breaks(self) -> Sequence[int]:
        """Positions of the line breaks."""
        return array("I", (match.start() for match in _BREAK.finditer(self.text)))


class StoredText:
    """Stored text with access by character offset and by line."""

    def __init__(self, content: Content) -> None:
        self.chars = content.chars
        self.lines = content.lines
        self.chunks = len(content.newlines)
        self.chunk_chars = content.chunk_chars
        self._content = content
        self._kept: OrderedDict[int, _Chunk] = OrderedDict()

    def chunk(self, position: int) -> str:
        """Return the text of a chunk."""
        return self._chunk(position).text

    def _chunk(self, position: int) -> _Chunk:
        if position not in self._kept:
            while len(self._kept) >= KEPT_CHUNKS:
                self._kept.popitem(last=False)
            self._kept[position] = _Chunk(self._content.chunk(position))
        self._kept.move_to_end(position)
        return self._kept[position]

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
        position = bisect_left(self._content.newlines, line - 1) - 1
        breaks = self._chunk(position).breaks
        return position * self.chunk_chars + breaks[line - 2 - self._content.newlines[position]] + 1

    def line_at(self, offset: int) -> int:
        """Return the number of the line that contains the character at `offset`."""
        if not self.chars:
            return 1
        position = min(offset, self.chars - 1) // self.chunk_chars
        before = self.chunk(position).count("\n", 0, offset - position * self.chunk_chars)
        return self._content.newlines[position] + before + 1


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
