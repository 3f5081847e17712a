"""Working memory for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from recollect.cli.context.plain import item_line, truncation_line
from recollect.cli.table import new_table
from recollect.cli.view import safe
from recollect.model import ContextCall, WorkingMemory

MOST_SHOWN = 240
COLOURS = {"system": "magenta", "user": "green", "assistant": "blue"}


class TerminalContext:
    """The part of `View` that is about working memory, in tables."""

    _console: Console

    def context(self, made: WorkingMemory, *, is_summary: bool, see: Callable[[], str]) -> None:
        if is_summary:
            self._blocks(made)
            return
        for message in made.messages:
            self._console.print(Text(message["role"], style=COLOURS.get(message["role"], "")))
            self._console.print(Padding(Text(safe(message["content"])), (0, 2, 1, 2)))
        self._truncations(made)
        again = safe(see())
        self._console.print(
            Text(f" {made.tokens:,} of {made.budget:,} tokens" + (f"; {again}" if again else ""), style="dim")
        )

    def context_calls(self, calls: Sequence[ContextCall]) -> None:
        if not calls:
            self._console.print(Text("No prompt was put together for this agent yet.", style="dim"))
            return
        table = new_table("Call", "When", "Session", "Tokens", text="", whole=("Call", "When", "Tokens"))
        for call in calls:
            tokens = Text(f"{call.tokens:,} of {call.budget:,}", style="yellow" if call.truncations else "")
            when = Text(f"{call.at.astimezone():%Y-%m-%d %H:%M}", style="dim")
            table.add_row(Text(call.id, style="cyan"), when, safe(call.session_id), tokens)
        self._console.print(table)

    def context_call(self, call: ContextCall) -> None:
        self._blocks(call)

    def _blocks(self, made: WorkingMemory | ContextCall) -> None:
        table = new_table("Block", "Tokens", "What is in it")
        for block in made.blocks:
            lines = Text()
            for item in block.items:
                line = item_line(item)
                cut = line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"
                lines.append(f"{cut}\n", style="dim" if item.left_out else "")
            lines.rstrip()
            table.add_row(Text(block.name, style="cyan"), f"{block.tokens:,}", lines)
        self._console.print(table)
        self._truncations(made)
        self._console.print(Text(f" {made.tokens:,} of {made.budget:,} tokens, {made.layout}", style="dim"))

    def _truncations(self, made: WorkingMemory | ContextCall) -> None:
        for each in made.truncations:
            line = truncation_line(each.message, each.tokens_removed, each.dropped_references)
            self._console.print(Text(f" {line}", style="yellow"))
