"""Geometry of charts that templates draw as SVG, and short numbers.

A chart is drawn in a box of `WIDTH` × `HEIGHT` that the page stretches; labels are text beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 1000, 200
TICKS = 4
ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
GAP = 0.25
"""Share of a column's place that stays empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartColumn:
    """Place of one day in a chart of columns, and its parts from the bottom."""

    label: str
    x: float
    width: float
    parts: tuple[tuple[str, float, float, int], ...]  # name, y, height and value


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Shapes and labels of a chart."""

    ticks: tuple[str, ...]  # labels of the vertical axis, highest first
    totals: Mapping[str, int]  # of each series
    columns: tuple[ChartColumn, ...]


def stack_columns(labels: Sequence[str], series: Mapping[str, Sequence[int]]) -> Chart:
    """Return a column for each label, with the values of all series on top of each other."""
    top = _round_up(max(map(sum, zip(*series.values(), strict=True)), default=0))
    place = WIDTH / max(1, len(labels))
    columns = []
    for index, label in enumerate(labels):
        parts, y = [], float(HEIGHT)
        for name, values in series.items():
            height = HEIGHT * values[index] / top
            y -= height
            parts.append((name, round(y, 1), round(height, 1), values[index]))
        x, width = round(place * (index + GAP / 2), 1), round(place * (1 - GAP), 1)
        columns.append(ChartColumn(label=label, x=x, width=width, parts=tuple(parts)))
    ticks = tuple(shorten(top * part // TICKS) for part in (4, 2, 0))
    return Chart(ticks=ticks, totals={name: sum(values) for name, values in series.items()}, columns=tuple(columns))


def _round_up(value: int) -> int:
    """Return a round number that is not below, and that divides into ticks.

    >>> _round_up(0), _round_up(7), _round_up(99), _round_up(1_234)
    (4, 8, 100, 1600)
    """
    if value <= TICKS:
        return TICKS
    step = value / TICKS
    unit = 10 ** floor(log10(step))
    return TICKS * int(next(each for each in ROUND if each * unit >= step and each * unit % 1 == 0) * unit)


def shorten(value: float) -> str:
    """Return a number with at most three digits and a unit.

    >>> shorten(950), shorten(1_234), shorten(45_678), shorten(2_000_000)
    ('950', '1.2k', '46k', '2M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            short = value / size
            return f"{short:.1f}".removesuffix(".0") + unit if short < 10 else f"{ceil(short - 0.5)}{unit}"
    return f"{value:g}"


def describe_bytes(count: int) -> str:
    """
    >>> describe_bytes(999), describe_bytes(52_400_000)
    ('999 bytes', '52 MB')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} bytes"
