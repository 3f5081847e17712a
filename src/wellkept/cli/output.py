"""Output of commands, described once for three kinds of readers.

A command builds an `Output` without knowing its reader: a program that requested JSON, the next program in a pipe, or a
person at a terminal. A `Printer` prints the part meant for its reader.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from wellkept.cli.text import UNSAFE, mark, safe
from wellkept.model import Json

REPORT_EVERY = 1000
"""Steps between two progress reports in a pipe."""

NARROW = 70
"""Terminals with fewer columns show no `wide_only` columns."""

WIDE = 100
"""Terminals with at least this many columns have room for explanations."""

Span = tuple[str, str]
"""A piece of text and its style, such as ("m-1", "cyan"). Styles are those of Rich."""


@dataclass(frozen=True, slots=True)
class Styled:
    """Text for a terminal: `text` in `style`, then `spans`, each in its own style."""

    text: str = ""
    style: str = ""
    spans: tuple[Span, ...] = ()


Cell = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `style` applies to cells that have none."""

    header: str
    style: str = ""
    wide_only: bool = False
    whole: bool = False  # wrapped only as a last resort
    number: bool = False  # aligned to the right
    fill: str = ""  # style that also covers the padding
    overflow: str = "fold"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers."""

    columns: Sequence[Column]
    rows: Iterable[Sequence[Cell]]


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
    """A line that goes to standard error in a pipe: a remark, not part of the record."""

    __slots__ = ()


Line = str | Sequence[str]
"""A line of text, or fields that tabs separate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Result of a command for each kind of reader.

    Iterables are consumed once, and only by the reader they are for.
    """

    json: Json | Callable[[], Json] | None = None  # a function if building it consumes the records
    lines: Iterable[Line] = ()  # for pipes
    # For terminals: `intro`, a table, `more`, `blocks`.
    intro: Iterable[Block] = ()
    columns: Sequence[Column] = ()
    rows: Iterable[Sequence[Cell]] = ()
    if_empty: Block = ""  # instead of a table without rows; dimmed if it is a plain string
    more: str = ""  # how to see the next page
    blocks: Iterable[Block] = ()


def tick(is_ok: bool) -> Styled:
    """Return a green ✓ or a red ✗."""
    return Styled(mark(is_ok), "green" if is_ok else "red")


def confirm(verb: str, id: str, name: str = "id") -> Output:
    """Return the output of a command that did something to one record; `name` is that of its id in JSON."""
    line = f"{verb}: {safe(id)}"
    return Output(json={"ok": True, name: id}, lines=[line], blocks=[(tick(True), line)])


def next_page(option: str, cursor: object, says: str = "There is more") -> str:
    """Return the hint for `Output.more`: the option that shows the next page, or "" without a cursor."""
    return "" if cursor is None else f" {says}: add {option} {safe(str(cursor))}"


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
        document = output.json() if callable(output.json) else output.json
        if document is not None:
            write_json(document)

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
                print(line, file=sys.stderr)
            else:
                print(line if isinstance(line, str) else "\t".join(line))

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
