"""Printing outputs on a terminal: tables and colours, fitted to its width."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from wellkept.cli import output as out


class TerminalPrinter:
    """Prints outputs with Rich."""

    is_json = False

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._is_streaming = False

    @property
    def width(self) -> int:
        return self._console.width

    def show(self, output: out.Output) -> None:
        self._end_stream()
        for block in output.blocks:
            if isinstance(block, out.Unwrapped):
                print(out.safe(block.text))
            elif not isinstance(block, out.Piped) and not (isinstance(block, out.Table) and block.only == "pipe"):
                self._console.print(*self._render(block))

    def note(self, text: str) -> None:
        self._end_stream()
        if text:
            self._console.print(Text(out.safe(text), style="dim"))

    def stream(self, text: str) -> None:
        self._is_streaming = True
        sys.stdout.write(out.safe(text))
        sys.stdout.flush()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total or None)
            yield lambda done: bar.advance(task, done)

    def _end_stream(self) -> None:
        if self._is_streaming:
            print()
            self._is_streaming = False

    def _render(self, block: out.Block) -> list[RenderableType]:
        match block:
            case list():
                return [_render_cell(cell) for cell in block]
            case out.Table():
                return [self._draw(block)]
            case out.Fields(values):
                named = [
                    (out.Styled(name, "dim"), out.Styled(value, "cyan" * (name == "id")))
                    for name, value in values.items()
                ]
                return self._render(out.Grid(named))
            case out.Grid(rows, gap, margin):
                grid = RichTable.grid(padding=(0, gap))
                for row in rows:
                    grid.add_row(*map(_render_cell, row))
                return [Padding(grid, margin)]
            case out.Indented(cell, around):
                return [Padding(_render_cell(cell), around)]
            case out.Entry(label, text, style):
                return [_render_cell(out.Styled(label, style)), Padding(_render_cell(text), (0, 2, 1, 2))]
            case out.Remark(text, style):
                return [_render_cell(out.Styled(text, style))]
            case out.Verbatim(text):
                return [_render_cell(text)]
            case str() | out.Styled():
                return [_render_cell(block)]
        raise TypeError(block)

    def _draw(self, table: out.Table) -> RichTable:
        is_narrow = self._console.width < out.NARROW
        columns = [each for each in table.columns if each.only != "pipe" and not (each.is_wide and is_narrow)]
        drawn = RichTable(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1))
        for each in columns:
            justify: JustifyMethod = "right" if each.is_number else "left"
            drawn.add_column(each.header, overflow="fold", no_wrap=each.is_whole, justify=justify, style=each.fill)
        for record in table.records:
            drawn.add_row(*(_render_cell(out.to_cell(each.value(record)), each.style) for each in columns))
        return drawn


def _render_cell(cell: out.Cell, style: str = "") -> Text:
    if isinstance(cell, str):
        return Text(out.safe(cell), style=style)
    text = Text(out.safe(cell.text), style=cell.style or style)
    for piece, its_style in cell.spans:
        text.append(out.safe(piece), style=its_style or None)
    return text
