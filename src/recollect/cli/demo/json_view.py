"""The tour for programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from recollect.cli.demo.script import Seen, Stop
from recollect.cli.json_text import write_json
from recollect.model import Json


class JsonTour:
    """The part of `View` that is about the tour, as JSON; there is nothing to show before its end."""

    def tour_stop(self, number: int, stop: Stop) -> None: ...

    def tour_line(self, line: str) -> None: ...

    def tour_ended(self, seen: Sequence[Seen]) -> None:
        write_json({"stops": [_stop(stop, list(ran)) for stop, ran in groupby(seen, key=lambda each: each.stop)]})


def _stop(stop: Stop, ran: Sequence[Seen]) -> Json:
    commands = [{"command": f"recollect {each.line}", "printed": each.printed} for each in ran]
    return {"title": stop.title, "says": stop.says, "days_later": stop.days_later, "commands": commands}
