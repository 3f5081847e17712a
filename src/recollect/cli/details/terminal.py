"""Details for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from recollect.cli.table import new_table
from recollect.cli.view import mark, one_line, safe
from recollect.model import Detail, DetailPage
from recollect.policy.details.references import reference


class TerminalDetails:
    """The part of `View` that is about details, in tables."""

    _console: Console
    _is_narrow: bool

    def detail_stored(self, detail: Detail) -> None:
        self._console.print(Text(mark(True), style="green"), Text(one_line(reference(detail.key, detail.description))))
        self._console.print(Padding(Text(one_line(detail.summary), style="dim"), (0, 2)))

    def detail_list(self, found: Sequence[Detail]) -> None:
        if not found:
            self._console.print(Text("There is nothing here.", style="dim"))
            return
        table = new_table(*(() if self._is_narrow else ("Type", "Lines")), "Key, and what it is", numbers=["Lines"])
        for each in found:
            about = Text.assemble(
                (safe(each.key), "cyan"), f"\n{one_line(each.description)}\n", (one_line(each.summary), "dim")
            )
            table.add_row(*(() if self._is_narrow else (safe(each.type), f"{each.lines:,}")), about)
        self._console.print(table)

    def detail_part(self, page: DetailPage) -> None:
        self._console.print(Text(safe(page.content.removesuffix("\n"))))
        self._console.print(Text(one_line(page.remaining), style="dim"))

    def detail_changed(self, key: str, done: str) -> None:
        self._console.print(Text(mark(True), style="green"), Text(f"{done}: {safe(key)}"))
