"""Timing on noisy machines: what is compared runs in turns, and the best turn of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: what was measured, its floor, how the two compare and what was promised."""

    what: str
    ours: str
    floor: str
    ratio: float
    target: str
    is_met: bool


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def processor_seconds(work: Callable[[], object]) -> float:
    """What the work took of the processor, in all threads: hardly more on a busy machine than on a quiet one."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def best_of_turns(works: Sequence[Callable[[], object]], *, turns: int) -> list[float]:
    """Each work's best time over several turns, taken one after the other so that all meet the same weather."""
    times = [[seconds(work) for work in works] for _ in range(turns)]
    return [min(column) for column in zip(*times, strict=True)]


def printed(lines: Sequence[Line]) -> str:
    header = ("measured", "ours", "floor", "ratio", "target", "")
    rows = [header] + [
        (line.what, line.ours, line.floor, f"{line.ratio:.2f}", line.target, "ok" if line.is_met else "MISSED")
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
