"""PDF reader: extracts the text of the pages, with bookmarks as headings.

Rendering a PDF may never end, so pages, characters and seconds are limited. Time is checked at every drawing operation,
because nested forms can multiply endlessly on a single page.

Memory is limited as well, because a few bytes can unpack to much: the fonts a page has loaded, the text their character
maps expand to, the unpacked streams kept for later, and the values of the document's objects.
"""

from __future__ import annotations

import io
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, Reading

MAX_PAGES = 5_000
MAX_SECONDS = 60.0
MAX_CHARS = 5_000_000
MAX_PAGE_BYTES = 10_000_000
UNPACK_LIMITS = (
    "array_based_stream_maximum_output_length",
    "lzw_maximum_output_length",
    "run_length_maximum_output_length",
    "zlib_maximum_output_length",
)
"""Limits of the library on unpacked data, 75 MB each by default, set to `MAX_PAGE_BYTES` here."""

MAX_OBJECTS = 30_000
"""Objects of a document: the library keeps each one, at up to 5 kB."""

MAX_VALUES = 1_500_000
"""Values in all objects outside of streams, at about 60 bytes each."""

MAX_OBJECT_STREAM_BYTES = 4_000_000
"""Unpacked bytes of a stream of objects: two bytes can be a value."""

MAX_KEPT_BYTES = 30_000_000
"""Unpacked bytes of streams kept for another use."""

MAX_PAGE_VALUES = 1_000_000
"""Operators and operands of a page, at about 80 bytes each."""

MAX_STATES = 10_000
"""Graphics states a page may save without restoring them, at about 200 bytes each."""

MAX_MAP_BYTES = 1_500_000
"""Unpacked bytes of a character map. Parsing takes about 50 times as much; all 65,536 codes are 1.2 MB."""

MAX_FONT_ENTRIES = 300_000
"""Characters and widths of the fonts in use at a time, at about 200 bytes each."""

MAX_PARAGRAPHS = 250_000
MAX_BOOKMARKS = 5_000
MAX_DEPTH = 6

Stopwatch = Callable[[], float]


class _LimitExceeded(Exception):
    """The document exceeds a limit."""


def read_pdf(content: bytes, *, stopwatch: Stopwatch = time.monotonic) -> Reading:
    """Parse a document. Raises: Invalid."""
    pypdf = import_module("pypdf")
    errors = import_module("pypdf.errors")
    # It logs a warning for every flaw it tolerates.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        limits = {**dict.fromkeys(UNPACK_LIMITS, MAX_PAGE_BYTES), "stream_parsing_work_maximum_count": MAX_PAGE_VALUES}
        with pypdf.apply_configuration(**limits):
            allowance = _Allowance(stopwatch)
            reader = _counting_reader(pypdf.PdfReader, allowance)(_Source(content, allowance))
            if reader.is_encrypted and not reader.decrypt(""):
                raise Invalid("is encrypted; save it without a password.")
            if len(reader.pages) > MAX_PAGES:
                raise Invalid(f"has more than {MAX_PAGES:,} pages; split it.")
            parts = list(islice(_parts(reader, allowance), MAX_PARAGRAPHS + 1))
            if len(parts) > MAX_PARAGRAPHS:
                raise Invalid(f"has more than {MAX_PARAGRAPHS:,} paragraphs; split it.")
            title = str((reader.metadata or {}).get("/Title") or "")
    except errors.DependencyError as error:
        raise Invalid("is encrypted in a way that cannot be read here; save it without a password.") from error
    except (_LimitExceeded, errors.LimitReachedError) as error:
        page_limits = f"{MAX_PAGE_BYTES:,} bytes or {MAX_PAGE_VALUES:,} values for one page"
        most = error if isinstance(error, _LimitExceeded) else page_limits
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
        self._values = 0
        self._states = 0
        self._exceeded = ""
        # Streams that keep their unpacked bytes, by id, the latest last.
        self._kept: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._kept_bytes = 0
        self._fonts = _Fonts(self)
        # Upper bound of the characters that the text of this page expands to.
        self._page_chars = 0

    def exceed(self, limit: str) -> None:
        """Stop for good: the library continues after errors inside forms, so the next check raises again.

        Raises: _LimitExceeded.
        """
        self._exceeded = limit
        raise _LimitExceeded(limit)

    def check(self) -> None:
        """Check the time. Raises: _LimitExceeded, Cancelled, TimedOut."""
        check_deadline()
        if self._exceeded:
            raise _LimitExceeded(self._exceeded)
        if self._stopwatch() > self._until:
            self.exceed(f"{MAX_SECONDS:g} seconds")

    def keep_object(self) -> None:
        """Count one object. Raises: _LimitExceeded, Cancelled, TimedOut."""
        self._objects += 1
        if self._objects > MAX_OBJECTS:
            self.exceed(f"{MAX_OBJECTS:,} objects")
        self.check()

    def keep_value(self) -> None:
        """Count one value of an object. Raises: _LimitExceeded, Cancelled, TimedOut."""
        self._values += 1
        if self._values > MAX_VALUES:
            self.exceed(f"{MAX_VALUES:,} values")
        if self._values % 1_000 == 0:
            self.check()

    def keep_unpacked(self, stream: Any, size: int) -> None:
        """Let a stream keep its unpacked bytes until others need the room."""
        if id(stream) in self._kept:
            self._kept.move_to_end(id(stream))
            return
        self._kept[id(stream)] = stream, size
        self._kept_bytes += size
        while self._kept_bytes > MAX_KEPT_BYTES:
            _, (oldest, its_size) = self._kept.popitem(last=False)
            oldest.decoded_self = None
            self._kept_bytes -= its_size

    def operation(self, operator: bytes, operands: Any, *_: object) -> None:
        """Check a drawing operation before it is carried out. Raises: _LimitExceeded, Cancelled, TimedOut."""
        self.check()
        if operator in SHOW_TEXT:
            strings = operands[0] if operator == b"TJ" and operands and isinstance(operands[0], list) else operands
            chars = sum(len(each) for each in strings if isinstance(each, str | bytes))
            self._page_chars += chars * self._fonts.longest
            if self._page_chars > MAX_CHARS:
                self.exceed(f"{MAX_CHARS:,} characters")
        elif operator in SAVE_STATE:
            self._states += SAVE_STATE[operator]
            if self._states > MAX_STATES:
                self.exceed(f"{MAX_STATES:,} graphics states")

    def page(self, page: Any) -> str:
        """Return the text of a page."""
        contents = page.get_contents()
        if contents is not None and len(contents.get_data()) > MAX_PAGE_BYTES:
            self.exceed(f"{MAX_PAGE_BYTES:,} bytes for one page")
        del contents
        self._page_chars = self._states = 0
        # The library calls this for the page and for each form on it.
        page._extract_text = self._fonts.measure(page._extract_text)
        text = _clean(page.extract_text(visitor_operand_before=self.operation))
        self._chars += len(text)
        if self._chars > MAX_CHARS:
            self.exceed(f"{MAX_CHARS:,} characters")
        self.check()
        return text


SHOW_TEXT = frozenset((b"Tj", b"TJ", b"'", b'"'))
SAVE_STATE = {b"q": 1, b"Q": -1}


class _Fonts:
    """Fonts in use. The library loads all fonts of a page or form before the first drawing operation."""

    def __init__(self, allowance: _Allowance) -> None:
        self._allowance = allowance
        self._font = import_module("pypdf.generic._font").Font
        self._entries = 0
        # Each font with its number of entries and its longest character, by id.
        self._measured: dict[int, tuple[Any, int, int]] = {}
        # Number of characters a single code can stand for.
        self.longest = 1

    def measure(self, extract: Callable[..., str]) -> Callable[..., str]:
        """Return `extract`, which counts the fonts of a page or form while they are in use."""

        def extract_measured(drawn: Any, *given: Any, **named: Any) -> str:
            entries, longest = self._entries, self.longest
            try:
                self._load(drawn)
                return extract(drawn, *given, **named)
            finally:
                self._entries, self.longest = entries, longest

        return extract_measured

    def _load(self, drawn: Any) -> None:
        """Raises: _LimitExceeded, Cancelled, TimedOut."""
        resources = _as_dict(drawn.get_inherited("/Resources", {}))
        for name in (fonts := _as_dict(resources.get("/Font"))):
            self._allowance.check()
            font = _as_dict(fonts[name])
            if id(font) not in self._measured:
                self._measured[id(font)] = font, *self._measure(font)
            _, entries, longest = self._measured[id(font)]
            self._entries += entries
            self.longest = max(self.longest, longest)
            if self._entries > MAX_FONT_ENTRIES:
                self._allowance.exceed(f"{MAX_FONT_ENTRIES:,} characters in the fonts of a page")

    def _measure(self, font: Any) -> tuple[int, int]:
        descriptor = _as_dict(font.get("/FontDescriptor"))
        is_mapped = "/ToUnicode" in font
        for source in (font.get("/ToUnicode"),) if is_mapped else (descriptor.get("/FontFile"),):
            stream: Any = None if source is None else source.get_object()
            if hasattr(stream, "get_data") and len(stream.get_data()) > MAX_MAP_BYTES:
                self._allowance.exceed(f"{MAX_MAP_BYTES:,} bytes for the characters of a font")
        try:
            made = self._font.from_font_resource(font)
        # The library skips such a font.
        except (AttributeError, TypeError):
            return 0, 1
        return len(made.character_map) + len(made.character_widths), max(
            map(len, made.character_map.values()), default=1
        )


def _as_dict(value: Any) -> Any:
    """Return what a value refers to if that is a dictionary, else an empty one."""
    found = None if value is None else value.get_object() if hasattr(value, "get_object") else value
    return found if isinstance(found, dict) else {}


class _Source(io.BytesIO):
    """Content of a document. The library steps back once for each value it reads, so these steps are counted."""

    def __init__(self, content: bytes, allowance: _Allowance) -> None:
        super().__init__(content)
        self._allowance = allowance

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_CUR and offset < 0:
            self._allowance.keep_value()
        return super().seek(offset, whence)


def _counting_reader(reader: Any, allowance: _Allowance) -> Any:
    """Return a reader class that counts each object it keeps: it reads all bookmarks before we see the first."""
    stream_class: Any = import_module("pypdf.generic").EncodedStreamObject

    class Stream(stream_class):  # type: ignore[misc]
        """Packed stream; the library's own would keep its unpacked bytes as long as the reader."""

        def get_data(self) -> bytes:
            if self.decoded_self is None:
                allowance.check()
            data: bytes = super().get_data()
            if len(data) > MAX_OBJECT_STREAM_BYTES and self.get("/Type") == "/ObjStm":
                allowance.exceed(f"{MAX_OBJECT_STREAM_BYTES:,} bytes for a stream of objects")
            allowance.keep_unpacked(self, len(data))
            return data

    class Counted(reader):  # type: ignore[misc]
        """Reader that counts its objects."""

        def cache_indirect_object(self, generation: int, number: int, kept: Any) -> Any:
            allowance.keep_object()
            if type(kept) is stream_class:
                kept.__class__ = Stream
            return super().cache_indirect_object(generation, number, kept)

    return Counted


def _parts(reader: Any, allowance: _Allowance) -> Iterator[DocumentPart]:
    bookmarks: dict[int, list[tuple[int, str]]] = {}
    for page, level, name in islice(_iter_bookmarks(reader, reader.outline, 1), MAX_BOOKMARKS):
        allowance.check()
        bookmarks.setdefault(page, []).append((level, name))
    for index, page in enumerate(reader.pages):
        yield from _page_parts(allowance, allowance.page(page), bookmarks.get(index, []), index + 1)


def _page_parts(
    allowance: _Allowance, text: str, bookmarks: list[tuple[int, str]], page: int
) -> Iterator[DocumentPart]:
    """Yield the paragraphs of a page; a bookmark becomes a heading at its line, or at the top of the page."""
    lines = text.split("\n")
    plain = ["".join(line.split()).casefold() for line in lines] if bookmarks else []
    borders: dict[int, list[tuple[int, str]]] = {}
    reached = 0
    for level, name in bookmarks:
        allowance.check()
        needle = "".join(name.split()).casefold()
        reached = next((at for at in range(reached, len(plain)) if plain[at].endswith(needle)), reached)
        borders.setdefault(reached, []).append((level, name))
    held: list[str] = []
    for at, line in enumerate(iter_with_deadline(lines, every=1_000)):
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
