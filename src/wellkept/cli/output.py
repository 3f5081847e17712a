"""Output of commands, described once for three kinds of readers.

A command builds an `Output` without knowing its reader: a program that requested JSON, the next program in a pipe, or a
person at a terminal. A `Printer` prints the part meant for its reader. Text from a store may come from anywhere: `safe`
makes control characters visible before it reaches a terminal.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from typing import Any, Protocol, cast

from wellkept.model import Json

REPORT_EVERY = 1000
"""Steps between two progress reports in a pipe."""

NARROW = 70
"""Terminals with fewer columns show no `wide` columns."""

WIDE = 100
"""Terminals with at least this many columns have room for explanations."""

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or reverse the direction of writing."""

HINT_CHARS = 80
"""Maximum length of a text in a hint."""

CELL_CHARS = 240
"""Maximum length of a text in a table; `show` prints all of it."""

EMPTY = "-"
"""Placeholder for an empty field in a line of tab-separated fields."""


def safe(text: str) -> str:
    """Make control characters visible; keep line breaks and tabs.

    >>> safe("red \\x1b[31malert")
    'red \\\\x1b[31malert'
    """
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Join the text to one line that is safe to print.

    >>> one_line("one\\n\\n  two\\tthree")
    'one two three'
    """
    return safe(" ".join(text.split()))


def shorten(line: str, limit: int = CELL_CHARS) -> str:
    """Cut a line to `limit` characters.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def excerpt(text: str) -> str:
    """Return the beginning of a text for a hint; `show` prints all of it."""
    return shorten(one_line(text), HINT_CHARS)


def plain_time(time: datetime) -> str:
    """Format a time for a line of text: to the second, in UTC with Z."""
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def local_time(time: datetime) -> str:
    """Format a time for a table: to the minute, in local time."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "memory"), count(1200, "memory"), count(2, "text")
    ('1 memory', '1,200 memories', '2 texts')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def plain(value: object) -> str:
    """Format a value for a field of a line.

    >>> plain(("style", "code")), plain(None), plain("one\\ntwo"), plain(0.5)
    ('style,code', '-', 'one two', '0.5')
    """
    if isinstance(value, datetime):
        return plain_time(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        value = ",".join(map(str, value))
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    elif isinstance(value, float):
        value = f"{value:g}"
    return EMPTY if value is None else one_line(str(value)) or EMPTY


def json_record(record: Any) -> Json:
    """Convert a record to the JSON object that REST answers with: its public fields by their public names."""
    return {
        each.metadata.get("alias", each.name): json_value(getattr(record, each.name))
        for each in fields(record)
        if not each.metadata.get("exclude")
    }


def json_value(value: Any) -> Any:
    """Convert a value to JSON; times are in UTC with Z."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [json_value(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    return json_record(value) if is_dataclass(value) else value


def mark(is_ok: bool) -> str:
    """Return ✓ or ✗, or words when the output cannot encode them."""
    # There may be no standard output, or one in memory without an encoding.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        "✓✗".encode(encoding)
    except UnicodeEncodeError:
        return "ok" if is_ok else "!!"
    return "✓" if is_ok else "✗"


Span = tuple[str, str]
"""A piece of text and its style, such as ("m-1", "cyan"). Styles are those of Rich."""


@dataclass(frozen=True, slots=True)
class Styled:
    """Text for a terminal: `text` in `style`, then `spans`, each in its own style. A field of a pipe has the text."""

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
    only: str = ""  # "pipe" or "terminal"
    is_wide: bool = False  # left out on narrow terminals
    is_whole: bool = False  # wrapped only as a last resort
    is_number: bool = False  # aligned to the right
    fill: str = ""  # style that also covers the padding
    unit: str = ""  # behind the value in a pipe, which shows no header


@dataclass(frozen=True, slots=True)
class Table:
    """Records: rows under headers, or a line of fields each."""

    columns: Sequence[Column]
    records: Sequence[Any]
    has_header: bool = False  # in a pipe, too
    only: str = ""  # "pipe" or "terminal"


@dataclass(frozen=True, slots=True)
class Fields:
    """One record, as names and values."""

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of several lines under a label, such as a message under its role."""

    label: str
    text: str
    style: str = ""  # of the label


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark that is not part of the result: on standard error in a pipe."""

    text: str
    style: str = "dim"


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that a pipe gets without any change."""

    text: str


class Piped(tuple[object, ...]):
    """Fields of a line that only a pipe gets."""

    __slots__ = ()

    def __new__(cls, *fields: object) -> Piped:
        return super().__new__(cls, fields)


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


Block = str | Table | Fields | Entry | Remark | Verbatim | Unwrapped | Piped | Styled | list[Cell] | Grid | Indented
"""Part of the output. A pipe gets nothing of `Styled`, `Grid`, `Indented`, or a list of cells, which share a line."""


@dataclass(frozen=True, slots=True)
class Output:
    """Result of a command: a document for programs, and the parts that a pipe and a terminal show."""

    json: Json | None = None
    blocks: Iterable[Block] = ()


def tick(is_ok: bool) -> Styled:
    """Return a green ✓ or a red ✗."""
    return Styled(mark(is_ok), "green" if is_ok else "red")


def ticked(*lines: str, is_ok: bool = True) -> list[Block]:
    """Return lines, which have a tick or a cross on a terminal."""
    return [block for line in lines for block in (Piped(line), list[Cell]((tick(is_ok), line)))]


def say(line: str, json: Json, *, is_ok: bool = True) -> Output:
    """Return the output of a command that has one sentence to say."""
    return Output(json, ticked(line, is_ok=is_ok))


def confirm(verb: str, id: str, name: str = "id") -> Output:
    """Return the output of a command that did something to one record; `name` is that of its id in JSON."""
    return say(f"{verb}: {id}", {"ok": True, name: id})


def list_records(
    columns: Sequence[Column],
    records: Sequence[Any],
    *,
    json: Callable[[Any], Any] = json_value,
    document: Json | None = None,
    if_empty: str | Block = "",
    notes: Iterable[Block] = (),
    hint: str = "",
    limit: int = 0,
    page: tuple[str, Callable[[Any], object]] | None = None,
) -> Output:
    """Return a list of records: JSON `items` or another `document`, a line each, a table.

    `page` is the option that continues a list of `limit` records, and reads its value from the last one. A string
    `if_empty` is a remark; a `hint` is for people only.
    """
    cursor = page[1](records[-1]) if page and records and len(records) == limit else None
    blocks: list[Block] = [Table(columns, records)] if records or not if_empty else []
    blocks += notes
    if not records and if_empty:
        blocks.append(Remark(if_empty) if isinstance(if_empty, str) else if_empty)
    if page is not None and cursor is not None:
        hint = f"There is more: add {page[0]} {cursor}"
    if hint and records:
        blocks.append(Styled(f" {hint}", "dim"))
    return Output(document or {"items": [json(each) for each in records], "next_cursor": cursor}, blocks)


def show_fields(values: Mapping[str, object], json: Json, *, text: str = "", blocks: Iterable[Block] = ()) -> Output:
    """Return one record by its fields that are not empty, then a text, then other blocks."""
    named = {name: plain(value) for name, value in values.items() if value not in (None, "", (), [], {})}
    shown: list[Block] = [Indented(Styled(text, "bold"))] if text else []
    shown.append(Fields(named))
    shown += [Piped("text: " + safe(text).replace("\n", "\n  "))] if text else []
    return Output(json, [*shown, *blocks])


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
        for block in output.blocks:
            if isinstance(block, Remark):
                # The result comes before the remark also when both streams are the same file.
                sys.stdout.flush()
                self.note(block.text)
            elif isinstance(block, Verbatim):
                print(block.text)
            else:
                for line in self._lines(block):
                    print(line)

    def _lines(self, block: Block) -> Iterator[str]:
        if isinstance(block, str | Unwrapped):
            yield safe(block if isinstance(block, str) else block.text)
        elif isinstance(block, Piped):
            # A single field keeps its line breaks.
            yield safe(str(block[0])) if len(block) == 1 else "\t".join(map(plain, block))
        elif isinstance(block, Fields):
            yield from (f"{name}: {value}" for name, value in block.values.items())
        elif isinstance(block, Entry):
            yield safe(f"{block.label}: " + block.text.replace("\n", "\n  "))
        elif isinstance(block, Table) and block.only != "terminal":
            columns = [each for each in block.columns if each.only != "terminal"]
            if block.has_header:
                yield "\t".join(each.header for each in columns)
            for record in block.records:
                yield "\t".join(_to_field(each, each.value(record)) for each in columns)

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


def _to_field(column: Column, value: object) -> str:
    return plain(value.text if isinstance(value, Styled) else value) + column.unit


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
