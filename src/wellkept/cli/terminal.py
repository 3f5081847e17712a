"""Printing outputs on a terminal: tables and colours, fitted to its width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import compress
from typing import TYPE_CHECKING, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from wellkept.cli.output import NARROW, Block, Cell, Grid, Indented, Output, Table, Unwrapped
from wellkept.cli.text import safe

if TYPE_CHECKING:
    from wellkept.cli.markdown import MarkdownStream


class TerminalPrinter:
    """Prints outputs with Rich."""

    is_json = False

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._stream: MarkdownStream | None = None

    @property
    def width(self) -> int:
        return self._console.width

    def show(self, output: Output) -> None:
        self._end_stream()
        for block in output.blocks:
            if isinstance(block, Unwrapped):
                print(safe(block.text))
            else:
                self._console.print(*self._render(block))

    def note(self, text: str) -> None:
        self._end_stream()
        if text:
            self._console.print(Text(safe(text), style="dim"))

    def stream(self, text: str) -> None:
        if self._stream is None:
            # Imported here, because it loads a highlighter of code.
            self._stream = import_module("wellkept.cli.markdown").MarkdownStream(self._console)
        self._stream.feed(text)

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total or None)
            yield lambda done: bar.advance(task, done)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _render(self, block: Block) -> list[RenderableType]:
        if isinstance(block, tuple):
            return [_render_cell(cell) for cell in block]
        if isinstance(block, Table):
            return [self._draw(block)]
        if isinstance(block, Grid):
            grid = RichTable.grid(padding=(0, block.gap))
            for row in block.rows:
                grid.add_row(*map(_render_cell, row))
            return [Padding(grid, block.margin)]
        if isinstance(block, Indented):
            return [Padding(_render_cell(block.cell), block.margin)]
        return [_render_cell(cast(Cell, block))]

    def _draw(self, table: Table) -> RichTable:
        is_narrow = self._console.width < NARROW
        is_shown = [not (each.only == "wide" and is_narrow) for each in table.columns]
        columns = list(compress(table.columns, is_shown))
        drawn = RichTable(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1))
        for each in columns:
            justify: JustifyMethod = "right" if each.is_number else "left"
            drawn.add_column(each.header, overflow="fold", no_wrap=each.is_whole, justify=justify, style=each.fill)
        for row in table.rows:
            drawn.add_row(*map(_render_cell, compress(row, is_shown), (each.style for each in columns)))
        return drawn


def _render_cell(cell: Cell, style: str = "") -> Text:
    if isinstance(cell, str):
        return Text(safe(cell), style=style)
    text = Text(safe(cell.text), style=cell.style or style)
    for piece, its_style in cell.spans:
        text.append(safe(piece), style=its_style or None)
    return text
