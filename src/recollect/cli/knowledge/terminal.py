"""Knowledge for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.cli.view import one_line, safe
from recollect.model import Skill


class TerminalKnowledge:
    """The part of `View` that is about knowledge, in tables."""

    _console: Console

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        if is_whole:
            for skill in skills:
                self._console.print(Padding(Text(safe(skill.body)), (1, 2)))
        elif skills:
            table = _table("Skill", "For", "What it is for")
            for skill in skills:
                agents = ", ".join(skill.agents) or "everybody"
                table.add_row(Text(safe(skill.name), style="cyan"), safe(agents), Text(one_line(skill.description)))
            self._console.print(table)
        else:
            self._console.print(Text("No skills; name folders of SKILL.md files in the setting skills.", style="dim"))
        for problem in problems:
            self._console.print(Text(one_line(problem), style="red"))


def _table(*headers: str) -> Table:
    """A table whose last column takes the room that is left."""
    table = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1))
    for header in headers[:-1]:
        table.add_column(header, overflow="fold")
    table.add_column(headers[-1], overflow="fold", ratio=1)
    return table
