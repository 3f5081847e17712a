"""The tour for pipes and files."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.demo.script import THE_END, Seen, Stop


class PlainTour:
    """The part of `View` that is about the tour, as lines."""

    def tour_stop(self, number: int, stop: Stop) -> None:
        print(f"\n{number}. {stop.title}\n{stop.says}" if number > 1 else f"{number}. {stop.title}\n{stop.says}")

    def tour_line(self, line: str) -> None:
        print(f"$ recollect {line}")

    def tour_ended(self, seen: Sequence[Seen]) -> None:
        print(f"\n{THE_END}")
