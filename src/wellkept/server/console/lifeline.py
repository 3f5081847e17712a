"""The life of a memory as a picture, and the differences of its versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from wellkept.memory.rules_lifetime import ARCHIVE_BELOW, decay_importance, find_fading
from wellkept.model import Kind, Memory, MemoryVersion

WIDTH, HEIGHT = 900, 150
LEFT, RIGHT = 20, 880
"""Edges between which time runs; labels of the first and the last moment need room."""

POINTS = 60
AHEAD = timedelta(days=7)
MOST_AHEAD = timedelta(days=365)
LABEL_WIDTH = 150
CLOSE = 9
"""Distance below which two moments are one mark."""

ROWS = 3
MAX_MARKS = 14
MAX_WORDS = 2_000
"""Words of a text that are compared; the comparison takes quadratic time in the worst case."""


class Moment(NamedTuple):
    """An event in the life of a memory."""

    at: datetime
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeMark:
    """Place of a moment in the picture."""

    x: float
    y: float  # on the curve
    row: int  # of its label below the axis
    anchor: Literal["start", "middle", "end"]
    moment: Moment
    is_ahead: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeLine:
    """Picture of a memory's life."""

    past: str  # path of the curve until now
    ahead: str  # path of the curve from now on
    archive_y: float
    now_x: float
    marks: tuple[LifeMark, ...]
    moments: tuple[Moment, ...]  # oldest first
    fades_at: datetime | None
    is_fading: bool  # it loses importance unless it is recalled


def draw_life(memory: Memory, versions: Sequence[MemoryVersion], now: datetime) -> LifeLine:
    """Return the picture of a memory's life, from when it was written until it ends or a while from now."""
    used_at = memory.last_retrieved_at or memory.created_at
    is_fading = memory.kind is Kind.EPISODE
    fades_at = find_fading(memory.importance, used_at, category=memory.category) if is_fading else None
    moments = sorted(_list_moments(memory, versions, fades_at, now))
    start = moments[0].at
    last = max(now, *(each.at for each in moments))
    end = min(last, now + MOST_AHEAD) + max(AHEAD, (last - start) * 0.04)
    stop = min((each for each in (memory.archived_at, memory.ends_at) if each is not None), default=end)

    def x(at: datetime) -> float:
        return round(LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, (at - start) / (end - start))), 1)

    def importance(at: datetime) -> float:
        if not is_fading or fades_at is None:
            return memory.importance
        since = used_at if at >= used_at else memory.created_at
        return decay_importance(memory.importance, retrieved_at=since, now=at)

    def y(at: datetime) -> float:
        return round(HEIGHT * (1 - importance(at)), 1)

    def path(begin: datetime, until: datetime) -> str:
        if until <= begin:
            return ""
        times = sorted({begin + (until - begin) * (each / POINTS) for each in range(POINTS + 1)} | _jump(begin, until))
        return "M" + "L".join(f"{x(at)} {y(at)}" for at in times)

    def _jump(begin: datetime, until: datetime) -> set[datetime]:
        """A recall lifts the curve at once."""
        return {used_at - timedelta(microseconds=1), used_at} if begin < used_at < until else set()

    return LifeLine(
        past=path(start, min(now, stop)),
        ahead=path(max(start, now), stop),
        archive_y=HEIGHT * (1 - ARCHIVE_BELOW),
        now_x=x(now),
        marks=tuple(_place_labels([(each, x(each.at), y(each.at)) for each in moments if each.at <= end], now)),
        moments=tuple(moments),
        fades_at=fades_at,
        is_fading=fades_at is not None,
    )


def _list_moments(
    memory: Memory, versions: Sequence[MemoryVersion], fades_at: datetime | None, now: datetime
) -> Iterator[Moment]:
    yield Moment(memory.created_at, "written")
    for each in versions[:MAX_MARKS]:
        yield Moment(each.replaced_at, f"edited to v{each.version + 1}")
    if memory.last_retrieved_at is not None:
        yield Moment(memory.last_retrieved_at, "last recalled")
    if memory.held_at is not None:
        yield Moment(memory.held_at, "held for review")
    if memory.valid_to is not None:
        yield Moment(memory.valid_to, "corrected")
    if memory.archived_at is not None:
        yield Moment(memory.archived_at, "archived")
    if memory.expires_at is not None:
        yield Moment(memory.expires_at, "expires" if memory.expires_at > now else "expired")
    is_over = memory.archived_at is not None or memory.ends_at is not None
    if fades_at is not None and not is_over:
        yield Moment(fades_at, "fades into the archive")


def _join_close(points: Sequence[tuple[Moment, float, float]]) -> Iterator[tuple[Moment, float, float]]:
    """Join moments that the picture cannot tell apart."""
    waiting = [*points]
    while waiting:
        moment, x, y = waiting.pop(0)
        labels = [moment.label]
        while waiting and waiting[0][1] - x < CLOSE:
            last, _, y = waiting.pop(0)
            labels.append(last.label)
        more = f", {len(labels) - 2} more" if len(labels) > 2 else ""
        yield Moment(moment.at, ", ".join(dict.fromkeys((labels[0], labels[-1]))) + more), x, y


def _place_labels(points: Sequence[tuple[Moment, float, float]], now: datetime) -> Iterator[LifeMark]:
    """Give each label a row below the axis in which it has room."""
    ends = [0.0] * ROWS
    for moment, x, y in _join_close(points):
        anchor: Literal["start", "middle", "end"] = "middle"
        left = x - LABEL_WIDTH / 2
        if left < 0:
            anchor, left = "start", x
        elif left + LABEL_WIDTH > WIDTH:
            anchor, left = "end", x - LABEL_WIDTH
        row = next((each for each in range(ROWS) if ends[each] <= left), min(range(ROWS), key=ends.__getitem__))
        ends[row] = left + LABEL_WIDTH
        yield LifeMark(x=x, y=y, row=row, anchor=anchor, moment=moment, is_ahead=moment.at > now)


Piece = tuple[Literal["same", "added", "removed"], str]
"""Part of a text that both versions have, or only the newer or the older one."""


def compare_words(older: str, newer: str) -> list[Piece]:
    """Return the differences of two texts, word by word.

    >>> compare_words("Tea at four", "Tea at five")
    [('same', 'Tea at '), ('removed', 'four'), ('added', 'five')]
    """
    before, after = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (older, newer))
    if max(len(before), len(after)) > MAX_WORDS:
        return [("removed", older), ("added", newer)]
    pieces: list[Piece] = []
    for tag, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(("same", "".join(before[start:end])))
            continue
        if end > start:
            pieces.append(("removed", "".join(before[start:end])))
        if last > first:
            pieces.append(("added", "".join(after[first:last])))
    return pieces
