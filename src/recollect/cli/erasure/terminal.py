"""Receipts for people."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from recollect.cli.table import new_table
from recollect.cli.view import json_value, one_line, safe
from recollect.model import Receipt

SHOWN = 50
"""Of what a dry run found; the counts tell of all."""


class TerminalErasure:
    """The part of `View` that is about erasure, in tables."""

    _console: Console
    _is_narrow: bool

    def erasure(self, receipt: Receipt) -> None:
        if receipt.found:
            self._found(receipt)
        counted = ("Would be removed", "Would lose its words") if receipt.is_dry_run else ("Removed", "Lost its words")
        table = new_table("Table", *counted, text="", numbers=counted)
        for name in sorted({*receipt.removed, *receipt.cleared}):
            table.add_row(name, _count(receipt.removed.get(name)), _count(receipt.cleared.get(name)))
        self._console.print(table if table.row_count else Text("Nothing mentions it.", style="dim"))
        for style, sentences in (("dim", receipt.remains), ("yellow", receipt.remnants)):
            for sentence in sentences:
                self._console.print(Text(f"· {safe(sentence)}", style=style))
        if not receipt.is_dry_run:
            self._console.print(Text(f"Receipt {receipt.hash}, {json_value(receipt.at)}", style="green"))

    def _found(self, receipt: Receipt) -> None:
        table = new_table(*(() if self._is_narrow else ("Table", "Agent")), "Id", "Says")
        for each in receipt.found[:SHOWN]:
            said = Text(one_line(each.excerpt), style="dim" if each.is_cleared else "")
            whose = () if self._is_narrow else (each.table, Text(safe(each.agent)))
            table.add_row(*whose, Text(safe(each.id), style="cyan"), said)
        self._console.print(table)
        if len(receipt.found) > SHOWN:
            self._console.print(Text(f"… and {len(receipt.found) - SHOWN:,} more", style="dim"))


def _count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
