"""The tour for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from recollect.cli.demo.script import THE_END, TOUR, Seen, Stop


class TerminalTour:
    """The part of `View` that is about the tour, with room around it."""

    _console: Console

    def tour_stop(self, number: int, stop: Stop) -> None:
        title = Text(f" {stop.title} ", style="bold white on blue")
        title.append(f" {number} of {len(TOUR)}", style="not bold dim default on default")
        self._console.print(Padding(title, (1, 0)))
        self._console.print(Text(stop.says))

    def tour_line(self, line: str) -> None:
        command = Text("\n$ ", style="dim")
        command.append(f"recollect {line}", style="cyan")
        self._console.print(command)

    def tour_ended(self, seen: Sequence[Seen]) -> None:
        self._console.print(Padding(Text(THE_END, style="green"), (1, 0)))
