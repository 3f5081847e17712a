"""Output of commands, described once for three kinds of readers.

A command builds an `Output` without knowing its reader: a program that requested JSON, the next program in a pipe, or a
person at a terminal. A `Printer` prints the part meant for its reader, and makes it safe to print.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, Protocol, cast

from wellkept.cli.text import EMPTY, UNSAFE, json_value, local_time, mark, one_line, plain, safe, shorten
from wellkept.model import Json

REPORT_EVERY = 1000
"""Steps between two progress reports in a pipe."""

NARROW = 70
"""Terminals with fewer columns show no `wide` columns."""

WIDE = 100
"""Terminals with at least this many columns have room for explanations."""

Span = tuple[str, str]
"""A piece of text and its style, such as ("m-1", "cyan"). Styles are those of Rich."""


@dataclass(frozen=True, slots=True)
class Styled:
    """Text for a terminal: `text` in `style`, then `spans`, each in its own style. A pipe gets the text alone."""

    text: str = ""
    style: str = ""
    spans: tuple[Span, ...] = ()


Cell = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list of records: how it reads the value, and where it is shown. Fields of a pipe have no header."""

    header: str
    value: Callable[[Any], object]
    style: str = ""  # of cells that have none
    only: str = ""  # "pipe", "terminal", or "wide": terminals that are not narrow
    is_whole: bool = False  # wrapped only as a last resort
    is_number: bool = False  # aligned to the right
    fill: str = ""  # style that also covers the padding


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Aligned rows without headers, `gap` columns apart, with margins (top and bottom, left and right)."""

    rows: Iterable[Sequence[Cell]]
    gap: int = 2
    margin: tuple[int, int] = (1, 2)


@dataclass(frozen=True, slots=True)
class Indented:
    """Text with margins: (top and bottom, left and right), or all four clockwise from the top."""

    cell: Cell
    margin: tuple[int, int] | tuple[int, int, int, int] = (1, 2)


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A line that is never wrapped, so that it can be copied."""

    text: str


Block = Cell | tuple[Cell, ...] | Table | Grid | Indented | Unwrapped
"""Part of the output on a terminal. The cells of a tuple share a line."""


class OutputNote(str):
    """A remark that is not part of the result: on standard error in a pipe."""

    __slots__ = ()


class Verbatim(str):
    """Text that a pipe gets without any change."""

    __slots__ = ()


Line = str | Sequence[object]
"""A line of text, or fields that tabs separate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Result of a command for each kind of reader."""

    json: Json | None = None
    lines: Iterable[Line] = ()  # for pipes
    blocks: Iterable[Block] = ()  # for terminals


def tick(is_ok: bool) -> Styled:
    """Return a green ✓ or a red ✗."""
    return Styled(mark(is_ok), "green" if is_ok else "red")


def say(line: str, json: Json, *, is_ok: bool = True) -> Output:
    """Return the output of a command that has one sentence to say."""
    return Output(json=json, lines=[line], blocks=[(tick(is_ok), line)])


def confirm(verb: str, id: str, name: str = "id") -> Output:
    """Return the output of a command that did something to one record; `name` is that of its id in JSON."""
    return say(f"{verb}: {id}", {"ok": True, name: id})


def remarks(lines: Iterable[str], style: str = "dim") -> tuple[list[Line], list[Block]]:
    """Return remarks, for a pipe and for a terminal."""
    found = [*lines]
    return [OutputNote(each) for each in found], [Styled(each, style) for each in found]


def list_records(
    columns: Sequence[Column],
    records: Sequence[Any],
    *,
    json: Callable[[Any], Any] = json_value,
    more: Mapping[str, object] | None = None,
    if_empty: Block = "",
    intro: Iterable[str] = (),
    notes: Iterable[str] = (),
    hint: str = "",
    limit: int = 0,
    page: tuple[str, Callable[[Any], object]] | None = None,
) -> Output:
    """Return a list of records: JSON `items` and `more` fields, a line each, a table.

    `page` is the option that continues a list of `limit` records, and reads its value from the last one. A string
    `if_empty` is a remark; a `hint` is for people only.
    """
    cursor = page[1](records[-1]) if page and records and len(records) == limit else None
    first, first_blocks = remarks(intro, "yellow")
    last, last_blocks = remarks(
        [*notes, *([if_empty] if isinstance(if_empty, str) and if_empty and not records else [])]
    )
    piped = [each for each in columns if each.only in ("", "pipe")]
    rows = [tuple(_text_of(column.value(each)) for column in piped) for each in records]
    shown = [each for each in columns if each.only != "pipe"]
    table = Table(shown, [[to_cell(column.value(each)) for column in shown] for each in records])
    # A list without a remark for it shows its headers.
    body: list[Block] = [table] if records or not if_empty else [] if isinstance(if_empty, str) else [if_empty]
    if page is not None and cursor is not None:
        hint = f"There is more: add {page[0]} {cursor}"
    if hint and records:
        last_blocks.append(Styled(f" {hint}", "dim"))
    return Output(
        json={"items": [json(each) for each in records], "next_cursor": cursor, **(more or {})},
        lines=[*first, *rows, *last],
        blocks=[*first_blocks, *body, *last_blocks],
    )


def show_fields(
    values: Mapping[str, object],
    json: Json,
    *,
    text: str = "",
    lines: Iterable[Line] = (),
    blocks: Iterable[Block] = (),
) -> Output:
    """Return one record by its fields that are not empty, then a text, then other lines and blocks."""
    named = {name: plain(value) for name, value in values.items() if value not in (None, "", (), [], {})}
    whole = ["text: " + safe(text).replace("\n", "\n  ")] if text else []
    grid = Grid([(Styled(name, "dim"), Styled(value, "cyan" if name == "id" else "")) for name, value in named.items()])
    return Output(
        json=json,
        lines=[*(f"{name}: {value}" for name, value in named.items()), *whole, *lines],
        blocks=[*([Indented(Styled(text, "bold"))] if text else []), grid, *blocks],
    )


def to_cell(value: object) -> Cell:
    """Return a value as a cell of a table."""
    if isinstance(value, Styled):
        return Styled(shorten(one_line(value.text)), value.style, value.spans)
    if isinstance(value, datetime):
        return local_time(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return ", ".join(map(one_line, map(str, value)))
    text = plain(value)
    return "" if text == EMPTY else shorten(text)


def _text_of(value: object) -> object:
    return value.text if isinstance(value, Styled) else value


class Printer(Protocol):
    """Prints outputs for one kind of reader."""

    is_json: bool
    """Standard output is one JSON document, so nothing else may be written there."""

    width: int
    """Columns of the terminal, or 0 if there is none."""

    def show(self, output: Output) -> None:
        """Print an output."""

    def note(self, text: str) -> None:
        """Print a remark that is not part of the result."""

    def stream(self, text: str) -> None:
        """Print a piece of a text that is still being produced."""

    def progress(self, label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show the progress of long work. Call the function with the number of steps done since the last call.

        A `total` of 0 means that it is unknown.
        """


def pick_printer(*, as_json: bool) -> Printer:
    """Return the printer for the reader of standard output."""
    if as_json:
        return JsonPrinter()
    if sys.stdout is not None and sys.stdout.isatty():
        # Rich takes long to import, and only terminals need it.
        return cast(Printer, import_module("wellkept.cli.terminal").TerminalPrinter())
    return PlainPrinter()


class JsonPrinter:
    """Prints one JSON document: snake_case names, times in UTC with Z."""

    is_json = True
    width = 0

    def show(self, output: Output) -> None:
        if output.json is not None:
            write_json(output.json)

    def note(self, text: str) -> None:
        print(safe(text), file=sys.stderr)

    def stream(self, text: str) -> None:
        """Print nothing; the document holds the whole text."""

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        yield lambda done: None


class PlainPrinter:
    """Prints lines for pipes and files: one record a line, fields separated by tabs, no colours."""

    is_json = False
    width = 0

    def show(self, output: Output) -> None:
        for line in output.lines:
            if isinstance(line, OutputNote):
                # The result comes before the remark also when both streams are the same file.
                sys.stdout.flush()
                print(safe(line), file=sys.stderr)
            elif isinstance(line, Verbatim):
                print(line)
            else:
                print(safe(line) if isinstance(line, str) else "\t".join(map(plain, line)))

    def note(self, text: str) -> None:
        print(safe(text), file=sys.stderr)

    def stream(self, text: str) -> None:
        sys.stdout.write(safe(text))
        sys.stdout.flush()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        done = 0

        def report(more: int) -> None:
            nonlocal done
            done += more
            if done // REPORT_EVERY > (done - more) // REPORT_EVERY:
                print(f"{label}: {done:,} of {total:,}" if total else f"{label}: {done:,}", file=sys.stderr)

        yield report


class ProgressBar:
    """A progress bar that appears with the first report, when the total is known."""

    def __init__(self, printer: Printer, label: str) -> None:
        self._printer = printer
        self._label = label
        self._open = ExitStack()
        self._advance: Callable[[int], None] | None = None
        self._done = 0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def report(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are done."""
        if self._advance is None:
            self._advance = self._open.enter_context(self._printer.progress(self._label, total))
        self._advance(done - self._done)
        self._done = done
        if done == total:
            # The bar must be gone before the result is printed.
            self._open.close()


def write_json(document: Json) -> None:
    """Print a JSON document and escape every character a terminal might act on."""
    is_unicode = sys.stdout is not None and codecs.lookup(sys.stdout.encoding).name.startswith("utf")
    text = json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False, default=str)
    # Only strings can hold such a character: outside of them, the only control characters in JSON are line breaks.
    print(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
