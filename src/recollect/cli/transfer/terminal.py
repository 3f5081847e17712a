"""Moving a tenant, for people."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from recollect.cli.table import new_table
from recollect.cli.transfer.plain import told_refused
from recollect.cli.view import one_line
from recollect.model import Exported, Imported


class TerminalTransfer:
    """The part of `View` that is about moving a tenant, in tables."""

    _console: Console

    def exported(self, exported: Exported, path: Path) -> None:
        table = new_table("What", "Rows", text="", numbers=["Rows"])
        for name, count in exported.counts.items():
            table.add_row(Text(name, style="cyan"), f"{count:,}")
        self._console.print(table)
        self._console.print(Text(f" {one_line(str(path))}", style="dim"))
        for problem in exported.problems:
            self._console.print(Text(one_line(problem), style="red"))

    def imported(self, imported: Imported) -> None:
        counted = ("Would be added" if imported.is_dry_run else "Added", "There already")
        table = new_table("What", *counted, text="", numbers=counted)
        for name in dict.fromkeys([*imported.added, *imported.present]):
            new, old = imported.added.get(name, 0), imported.present.get(name, 0)
            style = "green" if new else "dim"
            table.add_row(Text(name, style="cyan"), Text(f"{new:,}", style=style), Text(f"{old:,}", style="dim"))
        if table.row_count:
            self._console.print(table)
        else:
            self._console.print(Text("Nothing came in.", style="dim"))
        for line in told_refused(imported):
            self._console.print(Text(line, style="red"))
