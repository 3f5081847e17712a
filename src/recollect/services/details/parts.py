"""Reading a part of a stored text: only the chunks it lies in are unpacked."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

from recollect.model import DetailPage
from recollect.policy.details.keys import Part
from recollect.ports import Content

KEPT_CHUNKS = 3
"""Of one reading, in memory at a time."""

_BREAK = re.compile("\n")


class _Chunk:
    """A chunk that is in memory."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def breaks(self) -> Sequence[int]:
        """Where its line breaks are."""
        return array("I", (match.start() for match in _BREAK.finditer(self.text)))


class Text:
    """A stored text, read by characters and by lines."""

    def __init__(self, content: Content) -> None:
        self.chars = content.chars
        self.lines = content.lines
        self.chunks = len(content.newlines)
        self.chunk_chars = content.chunk_chars
        self._content = content
        self._kept: OrderedDict[int, _Chunk] = OrderedDict()

    def chunk(self, position: int) -> str:
        return self._chunk(position).text

    def _chunk(self, position: int) -> _Chunk:
        if position not in self._kept:
            while len(self._kept) >= KEPT_CHUNKS:
                self._kept.popitem(last=False)
            self._kept[position] = _Chunk(self._content.chunk(position))
        self._kept.move_to_end(position)
        return self._kept[position]

    def between(self, start: int, stop: int) -> str:
        """The characters from `start` to before `stop`."""
        stop = min(stop, self.chars)
        if start >= stop:
            return ""
        first, last = start // self.chunk_chars, (stop - 1) // self.chunk_chars
        parts = [self.chunk(position) for position in range(first, last + 1)]
        parts[-1] = parts[-1][: stop - last * self.chunk_chars]
        parts[0] = parts[0][start - first * self.chunk_chars :]
        return "".join(parts)

    def line_start(self, line: int) -> int:
        """Where a line begins, counted from 1; behind the last one: where the text ends."""
        if line <= 1:
            return 0
        if line > self.lines:
            return self.chars
        # The line begins behind the line break number `line - 1`; before its chunk there are fewer than that.
        position = bisect_left(self._content.newlines, line - 1) - 1
        breaks = self._chunk(position).breaks
        return position * self.chunk_chars + breaks[line - 2 - self._content.newlines[position]] + 1

    def line_at(self, offset: int) -> int:
        """The number of the line the character at `offset` belongs to."""
        if not self.chars:
            return 1
        position = min(offset, self.chars - 1) // self.chunk_chars
        before = self.chunk(position).count("\n", 0, offset - position * self.chunk_chars)
        return self._content.newlines[position] + before + 1


def read_page(key: str, text: Text, part: Part) -> DetailPage:
    """From a character on."""
    start = min(part.offset, text.chars)
    return _page(key, text, start, min(start + part.limit, text.chars))


def read_lines(key: str, text: Text, part: Part) -> DetailPage:
    """Certain lines, or the first ones, or the last ones."""
    if part.tail is not None:
        return _read_tail(key, text, part.tail, part.limit)
    first, last = part.lines or (1, part.head)
    start = text.line_start(first)
    wanted = text.chars if last is None else text.line_start(last + 1)
    stop = min(wanted, start + part.limit)
    if stop < wanted and (at := text.between(start, stop).rfind("\n")) >= 0:
        stop = start + at + 1  # whole lines, if there is room for one
    rest = None
    if stop < wanted:
        following = text.line_at(stop)
        end = "" if last is None else min(last, text.lines)
        rest = f'Not all of these lines fit; go on with lines="{following}-{end}" or offset={stop}.'
    return _page(key, text, start, stop, rest=rest)


def _read_tail(key: str, text: Text, count: int, limit: int) -> DetailPage:
    wanted = text.line_start(max(1, text.lines - count + 1))
    start = max(wanted, text.chars - limit)
    if start > wanted and (at := text.between(start, text.chars - 1).find("\n")) >= 0:
        start += at + 1
    return _page(key, text, start, text.chars)


def _page(key: str, text: Text, start: int, stop: int, *, rest: str | None = None) -> DetailPage:
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
        remaining=rest or _remaining(text, start, stop),
    )


def _remaining(text: Text, start: int, stop: int) -> str:
    if start >= text.chars:
        lines = f"{text.lines:,} line{'' if text.lines == 1 else 's'}"
        return f"Nothing stands here: the text has {text.chars:,} characters in {lines}."
    before = f"{start:,} characters come before it (offset=0)" if start else ""
    after = f"{text.chars - stop:,} characters follow; go on with offset={stop}" if stop < text.chars else ""
    if not before and not after:
        return "This is all of it."
    said = " and ".join(each for each in (before, after) if each)
    return f"{said[0].upper()}{said[1:]}. Also: lines=, head=, tail=, grep=, json_path=."
