"""Split a document into passages that can be found and understood alone.

A document consists of parts: headings, paragraphs, lists, code, tables. Parts below the same headings are packed into
passages of about `TARGET` and at most `CAP` characters. Every passage starts with the line of its headings, so that
"within 14 days" is still about refunds and words of the heading find it. A list, a table or a piece of code stays whole
if it fits; where prose is split, the next passage repeats the end of the previous one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from wellkept.errors import Invalid
from wellkept.language.text import check_text
from wellkept.model.records import HEADING_SEPARATOR

VERSION = "2"
"""Version of the algorithm; raise it when documents would be split differently, so that they are split again."""

TARGET = 900
CAP = 1350
OVERLAP = 80
"""Sizes in characters, tuned on questions about real documentation: decisions/."""

MAX_NAME = 80
MAX_TITLE = 160
MAX_PATH = 240
"""Maximum characters of one heading, of the title, and of the heading line of a passage with more than three headings.

A title is often all that names the subject, so more of it is kept.
"""

MAX_PAGES = len(" (pages 5000–5000)")

SEPARATOR = HEADING_SEPARATOR
PARAGRAPH = "\n\n"
CUT = "…"

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


class PartKind(StrEnum):
    """Kind of a part, which decides where it may be split."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """One piece of a document's structure."""

    kind: PartKind
    text: str
    level: int = 0  # of a heading; 1 is the highest
    place: str = "line"  # unit of `number`: line or page
    number: int = 0  # position in the file; 0 if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Parsed file: its parts, and its own title, if any."""

    title: str
    parts: Sequence[DocumentPart]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Unsplit content of a passage."""

    text: str
    is_prose: bool = False
    is_continuation: bool = False  # continues the paragraph of the previous piece
    page: int = 0  # 0 if the file has no pages


def split_passages(title: str, parts: Iterable[DocumentPart]) -> list[str]:
    """Split a document into passages, in order, each below its line of headings.

    >>> split_passages("Refunds", [DocumentPart(kind=PartKind.HEADING, text="Deadline", level=2),
    ...                      DocumentPart(kind=PartKind.PARAGRAPH, text="Within 14 days.")])
    ['Refunds > Deadline\\n\\nWithin 14 days.']
    """
    found: list[str] = []
    for path, section in _sections(title, parts):
        head = heading_line(path)
        if not section:
            found.append(head)
            continue
        room = CAP - len(head) - MAX_PAGES - 2
        pieces = [piece for part in section for piece in _pieces(part, room)]
        found += [
            f"{head}{_page_mark(packed)}\n\n{_join_pieces(packed)}" for packed in _pack(pieces, min(TARGET, room), room)
        ]
    return found


def _page_mark(pieces: Sequence[_Piece]) -> str:
    """Return the end of a heading line that names the pages; empty for files without pages."""
    pages = [piece.page for piece in pieces if piece.page]
    if not pages:
        return ""
    first, last = min(pages), max(pages)
    return f" (page {first})" if first == last else f" (pages {first}–{last})"


def heading_line(path: Sequence[str]) -> str:
    """Join the headings of a passage, shortened in the middle if there are many.

    >>> heading_line(["Handbook", "Refunds", "EU"])
    'Handbook > Refunds > EU'
    """
    names = [_shorten(name, MAX_NAME if place else MAX_TITLE) for place, name in enumerate(path)]
    while len(SEPARATOR.join(names)) > MAX_PATH and len(names) > 3:
        names = [names[0], CUT, *(names[3:] if names[1] == CUT else names[2:])]
    return SEPARATOR.join(names)


def retitle_passage(passage: str, old: str, new: str) -> str:
    """Change the document's title in the heading line of a passage.

    >>> retitle_passage("Refunds > Deadline\\n\\nWithin 14 days.", "Refunds", "Returns")
    'Returns > Deadline\\n\\nWithin 14 days.'
    """
    head, blank, body = passage.partition("\n\n")
    # Passages of the first edition have a shorter title.
    for limit in (MAX_TITLE, MAX_NAME):
        if head.startswith(cut := _shorten(old, limit)):
            head = head.removeprefix(cut)
            break
    return _shorten(new, MAX_TITLE) + head + blank + body


def _shorten(name: str, limit: int) -> str:
    name = _SPACE.sub(" ", name).strip()
    return name if len(name) <= limit else name[: limit - 1] + CUT


def _cut_name(name: str) -> str:
    """Cut a name to the length that `_shorten` needs: every passage below repeats it, and it may be a whole page."""
    return name[: MAX_TITLE + 1]


def _sections(title: str, parts: Iterable[DocumentPart]) -> Iterator[tuple[Sequence[str], Sequence[DocumentPart]]]:
    """Yield the parts below each path of headings. A heading without content or subheadings is a section alone."""
    path: list[tuple[int, str]] = []
    section: list[DocumentPart] = []
    is_empty = False  # the last heading has no content yet
    for part in parts:
        if not part.text.strip():
            continue
        if part.kind is not PartKind.HEADING:
            section.append(part)
            is_empty = False
            continue
        if section or (is_empty and part.level <= path[-1][0]):
            yield _names(title, path), section
        while path and path[-1][0] >= part.level:
            path.pop()
        name = _SPACE.sub(" ", part.text).strip()
        is_long = len(name) > MAX_NAME
        path.append((part.level, _cut_name(name)))
        # The heading line shortens a long heading, so its full text starts the section.
        section = [replace(part, kind=PartKind.PARAGRAPH)] if is_long else []
        is_empty = not is_long
    if section or is_empty:
        yield _names(title, path), section


def _names(title: str, path: Sequence[tuple[int, str]]) -> Sequence[str]:
    names, title = [name for _, name in path], _cut_name(title)
    return names if names and names[0] == title else [title, *names]


def _pieces(part: DocumentPart, room: int) -> Iterator[_Piece]:
    """Yield the part whole if it fits, otherwise in pieces that do."""
    text = part.text.strip("\n").rstrip() if part.kind is PartKind.CODE else part.text.strip()
    is_prose, page = part.kind is PartKind.PARAGRAPH, part.number if part.place == "page" else 0
    if len(text) <= (min(TARGET, room) if is_prose else room):
        yield _Piece(text, is_prose=is_prose, page=page)
    elif is_prose:
        # Half of the target, so that `_pack` can fill passages with them.
        sentences = _join(_sentences(text), min(TARGET, room) // 2, room, glue=" ")
        for count, each in enumerate(sentences):
            yield _Piece(each, is_prose=True, is_continuation=count > 0, page=page)
    elif part.kind is PartKind.TABLE:
        yield from (_Piece(each, page=page) for each in _table_pieces(text, room))
    else:
        yield from (_Piece(each, page=page) for each in _join(text.split("\n"), TARGET, room, glue="\n"))


def _sentences(text: str) -> list[str]:
    """Split a text into sentences.

    >>> _sentences("One. Two!\\nThree")
    ['One.', 'Two!', 'Three']
    """
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def _table_pieces(text: str, room: int) -> Iterator[str]:
    """Yield groups of rows, each below the header of the table unless that is too long to repeat."""
    lines = text.split("\n")
    depth = 2 if len(lines) > 1 and set(lines[1]) <= set("|-: ") and "-" in lines[1] else 1
    head = "\n".join(lines[:depth])
    if len(head) > room // 3:
        yield from _join(lines, TARGET, room, glue="\n")
        return
    for rows in _join(lines[depth:], TARGET - len(head) - 1, room - len(head) - 1, glue="\n"):
        yield f"{head}\n{rows}"


def _join(texts: Iterable[str], target: int, most: int, *, glue: str) -> Iterator[str]:
    """Join neighbouring texts up to `target` characters; split texts longer than `most`."""
    joined = ""
    for text in (piece for whole in texts for piece in _split(whole, most)):
        if joined and len(joined) + len(glue) + len(text) > target:
            yield joined
            joined = text
        else:
            joined = f"{joined}{glue}{text}" if joined else text
    if joined:
        yield joined


def _split(text: str, most: int) -> Iterator[str]:
    """Split a text at white space if possible."""
    start = 0
    while len(text) - start > most:
        border = text.rfind(" ", start + most // 2, start + most + 1)
        border = border if border > 0 else start + most
        yield text[start:border].rstrip()
        space = _SPACE.match(text, border)
        start = space.end() if space else border
    yield text[start:]


def _pack(pieces: Sequence[_Piece], target: int, most: int) -> Iterator[Sequence[_Piece]]:
    """Group pieces into passages; a passage that continues prose repeats the last sentences of the previous one."""
    packed: list[_Piece] = []
    size = 0
    for piece in pieces:
        if packed and size + 2 + len(piece.text) > target:
            yield packed
            tail = _overlap(packed[-1], min(OVERLAP, most - len(piece.text) - 2)) if piece.is_prose else ""
            # The page of a repeated end is not the page of the passage.
            packed = [_Piece(tail, is_prose=True)] if tail else []
            size = len(tail)
        size += len(piece.text) + (2 if packed else 0)
        packed.append(piece)
    if packed:
        yield packed


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    first, *rest = pieces
    return first.text + "".join(f"{' ' if piece.is_continuation else PARAGRAPH}{piece.text}" for piece in rest)


def _overlap(piece: _Piece, most: int) -> str:
    """Return as many of the last sentences of prose as fit, or the last words if none does."""
    if not piece.is_prose or most <= 0:
        return ""
    tail = ""
    for sentence in reversed(_sentences(piece.text)):
        longer = f"{sentence} {tail}".strip()
        if len(longer) > most:
            break
        tail = longer
    if tail or len(piece.text) <= most:
        return tail or piece.text
    words = piece.text[-most:]
    return words.partition(" ")[2].strip()


MAX_TITLE_CHARS = 300
MAX_CATEGORY_CHARS = 100
MAX_CATEGORIES = 100
MAX_SOURCE_CHARS = 1000

MAX_PASSAGES = 20_000
"""Maximum number of passages of a document, which is stored in one transaction."""
UNTITLED_CHARS = 80
ID_CHARS = 16

WHITEBOARD = "whiteboard"
"""Category of documents that agents and people of a tenant write for each other."""


def document_id(*, source: str, title: str) -> str:
    """Return an id derived from the source, or from the title if there is no source."""
    identity = f"source:{source}" if source else f"title:{title}"
    return f"d-{hashlib.sha256(identity.encode()).hexdigest()[:ID_CHARS]}"


def document_hash(content: bytes, *, suffix: str) -> str:
    """Return a hash that changes if the document would be split into other passages."""
    return hashlib.sha256(f"{VERSION}:{suffix}:".encode() + content).hexdigest()[:32]


def check_title(title: str) -> str:
    """Validate a title. Raises: Invalid."""
    title = " ".join(check_text(title, what="title").split())
    if not title:
        raise Invalid("A document's title cannot be blank.")
    if len(title) > MAX_TITLE_CHARS:
        raise Invalid(f"A document's title is too long (max {MAX_TITLE_CHARS} characters).")
    return title


def check_category(category: str) -> str:
    """Validate a category. Raises: Invalid."""
    category = " ".join(check_text(category, what="category").split())
    if len(category) > MAX_CATEGORY_CHARS:
        raise Invalid(f"A category is too long (max {MAX_CATEGORY_CHARS} characters).")
    return category


def check_categories(categories: Iterable[str]) -> tuple[str, ...]:
    """Validate categories and drop repeats, in the given order. Raises: Invalid."""
    checked = tuple(dict.fromkeys(check_category(each) for each in categories))
    if len(checked) > MAX_CATEGORIES or not all(checked):
        raise Invalid(f"Categories are a list of at most {MAX_CATEGORIES} names, none of them blank.")
    return checked


def choose_title(requested: str | None, read: str, name: str, parts: Iterable[DocumentPart]) -> str:
    """Choose a document's title: the requested one, the one in the text, the file name, or its first words.

    Raises: Invalid.
    """
    if requested is not None:
        return check_title(requested)
    first = next((part.text for part in parts if part.text.strip()), "")
    title = " ".join((read or name or first).split())
    limit = MAX_TITLE_CHARS if read or name else UNTITLED_CHARS
    return check_title(title if len(title) <= limit else title[: limit - 1] + "…")
