"""PDF reader: extracts the text of the pages, with bookmarks as headings.

Rendering a PDF may never end, so pages, characters and seconds are limited. Time is checked at every drawing operation,
because nested forms can multiply endlessly on a single page.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from recollect.deadline import check_deadline
from recollect.errors import Invalid
from recollect.policy.chunking import DocumentPart, PartKind
from recollect.ports import Reading

MAX_PAGES = 5_000
MAX_SECONDS = 60.0
MAX_CHARS = 5_000_000
MAX_PAGE_BYTES = 20_000_000
UNPACK_LIMITS = (
    "array_based_stream_maximum_output_length",
    "lzw_maximum_output_length",
    "run_length_maximum_output_length",
    "zlib_maximum_output_length",
)
"""Limits of the library on unpacked data, 75 MB each by default, set to `MAX_PAGE_BYTES` here."""

MAX_OBJECTS = 30_000
"""Objects of a document: the library keeps each one, at up to 5 kB."""

MAX_BOOKMARKS = 5_000
MAX_DEPTH = 6

Stopwatch = Callable[[], float]


class _LimitExceeded(Exception):
    """The document exceeds a limit."""


def read_pdf(content: bytes, *, stopwatch: Stopwatch = time.monotonic) -> Reading:
    """Parse a document.

    Raises: Invalid.
    """
    pypdf = import_module("pypdf")
    errors = import_module("pypdf.errors")
    # It logs a warning for every flaw it tolerates.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        with pypdf.apply_configuration(**dict.fromkeys(UNPACK_LIMITS, MAX_PAGE_BYTES)):
            allowance = _Allowance(stopwatch)
            reader = _counting_reader(pypdf.PdfReader, allowance)(io.BytesIO(content))
            if reader.is_encrypted and not reader.decrypt(""):
                raise Invalid("is encrypted; save it without a password.")
            if len(reader.pages) > MAX_PAGES:
                raise Invalid(f"has more than {MAX_PAGES:,} pages; split it.")
            parts = list(_parts(reader, allowance))
            title = str((reader.metadata or {}).get("/Title") or "")
    except errors.DependencyError as error:
        raise Invalid("is encrypted in a way that cannot be read here; save it without a password.") from error
    except (_LimitExceeded, errors.LimitReachedError) as error:
        most = error if isinstance(error, _LimitExceeded) else f"{MAX_PAGE_BYTES:,} bytes for one page"
        raise Invalid(f"takes more than {most} to read; split it, or print it to a new PDF.") from error
    except (errors.PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise Invalid("is broken: it cannot be read as PDF. Open it in a viewer and save it again.") from error
    except RecursionError as error:
        raise Invalid("is broken: it refers to itself without end.") from error
    return Reading(title=" ".join(_clean(title).split()), parts=parts)


class _Allowance:
    """Remaining limits of one document."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._until = stopwatch() + MAX_SECONDS
        self._chars = 0
        self._objects = 0

    def keep_object(self) -> None:
        """Count one object.

        Raises: _LimitExceeded, Cancelled, TimedOut.
        """
        self._objects += 1
        if self._objects > MAX_OBJECTS:
            raise _LimitExceeded(f"{MAX_OBJECTS:,} objects")
        self.operation()

    def operation(self, *_: object) -> None:
        """Check the time.

        Raises: _LimitExceeded, Cancelled, TimedOut.
        """
        check_deadline()
        if self._stopwatch() > self._until:
            raise _LimitExceeded(f"{MAX_SECONDS:g} seconds")

    def page(self, page: Any) -> str:
        """Return the text of a page."""
        contents = page.get_contents()
        if contents is not None and len(contents.get_data()) > MAX_PAGE_BYTES:
            raise _LimitExceeded(f"{MAX_PAGE_BYTES:,} bytes for one page")
        text = _clean(page.extract_text(visitor_operand_before=self.operation))
        self._chars += len(text)
        if self._chars > MAX_CHARS:
            raise _LimitExceeded(f"{MAX_CHARS:,} characters")
        self.operation()
        return text


def _counting_reader(reader: Any, allowance: _Allowance) -> Any:
    """Return a reader class that counts each object it keeps: it reads all bookmarks before we see the first."""

    class Counted(reader):  # type: ignore[misc]
        """Reader that counts its objects."""

        def cache_indirect_object(self, *args: Any) -> Any:
            allowance.keep_object()
            return super().cache_indirect_object(*args)

    return Counted


def _parts(reader: Any, allowance: _Allowance) -> Iterator[DocumentPart]:
    bookmarks: dict[int, list[tuple[int, str]]] = {}
    for page, level, name in islice(_iter_bookmarks(reader, reader.outline, 1), MAX_BOOKMARKS):
        allowance.operation()
        bookmarks.setdefault(page, []).append((level, name))
    for index, page in enumerate(reader.pages):
        yield from _page_parts(allowance, allowance.page(page), bookmarks.get(index, []), index + 1)


def _page_parts(
    allowance: _Allowance, text: str, bookmarks: list[tuple[int, str]], page: int
) -> Iterator[DocumentPart]:
    """Yield the paragraphs of a page; a bookmark becomes a heading at its line, or at the top of the page."""
    lines = text.split("\n")
    plain = ["".join(line.split()).casefold() for line in lines]
    borders: dict[int, list[tuple[int, str]]] = {}
    reached = 0
    for level, name in bookmarks:
        allowance.operation()
        needle = "".join(name.split()).casefold()
        reached = next((at for at in range(reached, len(plain)) if plain[at].endswith(needle)), reached)
        borders.setdefault(reached, []).append((level, name))
    held: list[str] = []
    for at, line in enumerate(lines):
        if at in borders or not line.strip():
            yield from _paragraph(held, page)
            held = []
        for level, name in borders.get(at, ()):
            yield DocumentPart(kind=PartKind.HEADING, text=name, level=level, place="page", number=page)
        held.append(line)
    yield from _paragraph(held, page)


def _paragraph(lines: list[str], page: int) -> Iterator[DocumentPart]:
    text = "\n".join(line.rstrip() for line in lines).strip()
    if text:
        yield DocumentPart(kind=PartKind.PARAGRAPH, text=text, place="page", number=page)


def _iter_bookmarks(reader: Any, outline: Any, level: int) -> Iterator[tuple[int, int, str]]:
    """Yield page, level and name of each bookmark."""
    for each in outline:
        if isinstance(each, list):
            if level < MAX_DEPTH:
                yield from _iter_bookmarks(reader, each, level + 1)
        else:
            page = reader.get_destination_page_number(each)
            name = " ".join(_clean(str(each.title)).split())
            if page is not None and page >= 0 and name:
                yield page, level, name


def _clean(text: str) -> str:
    """Remove characters that cannot be stored."""
    return text.replace("\x00", "").encode(errors="replace").decode()
