"""Cutting a document into passages that can be found and understood alone.

A document arrives as parts: headings, paragraphs, lists, code, tables. Parts below the same headings are packed into
passages of about `TARGET` characters and never more than `CAP`. Every passage begins with the line of headings it
stands under, so that "within 14 days" is still about refunds, and words of the heading find it. A list, a table or a
piece of code stays whole where it fits; where prose had to be cut, the next passage repeats the end of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

VERSION = "1"
"""Goes up when the same document would be cut differently, so that it is cut anew when it is ingested again."""

TARGET = 900
CAP = 1350
OVERLAP = 80
"""Characters, each measured on questions about real documentation: docs/decisions.md."""

MAX_NAME = 80
MAX_PATH = 240
SEPARATOR = " > "
PARAGRAPH = "\n\n"
CUT = "…"

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


class PartKind(StrEnum):
    """What a part of a document is, which decides where it may be cut."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a document's structure."""

    kind: PartKind
    text: str
    level: int = 0  # of a heading; 1 is the highest
    place: str = "line"  # what `number` counts: lines or pages
    number: int = 0  # where it begins in the file; 0: nobody knows


@dataclass(frozen=True, slots=True)
class _Piece:
    """Something that goes into a passage as it is."""

    text: str
    is_prose: bool = False
    goes_on: bool = False  # what comes before is of the same paragraph


def passages(title: str, parts: Iterable[Part]) -> list[str]:
    """The document as passages, in order, each headed by where it stands.

    >>> passages("Refunds", [Part(kind=PartKind.HEADING, text="Deadline", level=2),
    ...                      Part(kind=PartKind.PARAGRAPH, text="Within 14 days.")])
    ['Refunds > Deadline\\n\\nWithin 14 days.']
    """
    found: list[str] = []
    for path, section in _sections(title, parts):
        head = heading_line(path)
        if not section:
            found.append(head)
            continue
        room = CAP - len(head) - 2
        pieces = [piece for part in section for piece in _pieces(part, room)]
        found += [f"{head}\n\n{body}" for body in _packed(pieces, min(TARGET, room), room)]
    return found


def heading_line(path: Sequence[str]) -> str:
    """The headings a passage stands under, shortened in the middle when they are many.

    >>> heading_line(["Handbook", "Refunds", "EU"])
    'Handbook > Refunds > EU'
    """
    names = [_shortened(name) for name in path]
    while len(SEPARATOR.join(names)) > MAX_PATH and len(names) > 3:
        names = [names[0], CUT, *(names[3:] if names[1] == CUT else names[2:])]
    return SEPARATOR.join(names)


def retitled(passage: str, old: str, new: str) -> str:
    """The passage of a document that has got another title.

    >>> retitled("Refunds > Deadline\\n\\nWithin 14 days.", "Refunds", "Returns")
    'Returns > Deadline\\n\\nWithin 14 days.'
    """
    head, blank, body = passage.partition("\n\n")
    return _shortened(new) + head.removeprefix(_shortened(old)) + blank + body


def _shortened(name: str) -> str:
    name = _SPACE.sub(" ", name).strip()
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + CUT


def _bounded(name: str) -> str:
    """As much of a name as `_shortened` looks at: every passage below repeats it, and it may be a whole page."""
    return name[: MAX_NAME + 1] if len(name) > MAX_NAME else name


def _sections(title: str, parts: Iterable[Part]) -> Iterator[tuple[Sequence[str], Sequence[Part]]]:
    """What stands under each row of headings. A heading with nothing under it, not even another one, stands alone."""
    path: list[tuple[int, str]] = []
    section: list[Part] = []
    is_bare = False  # the last heading has had nothing yet
    for part in parts:
        if not part.text.strip():
            continue
        if part.kind is not PartKind.HEADING:
            section.append(part)
            is_bare = False
            continue
        if section or (is_bare and part.level <= path[-1][0]):
            yield _names(title, path), section
        while path and path[-1][0] >= part.level:
            path.pop()
        name = _SPACE.sub(" ", part.text).strip()
        is_long = len(name) > MAX_NAME
        path.append((part.level, _bounded(name)))
        section = [Part(kind=PartKind.PARAGRAPH, text=part.text)] if is_long else []  # the line above has no room
        is_bare = not is_long
    if section or is_bare:
        yield _names(title, path), section


def _names(title: str, path: Sequence[tuple[int, str]]) -> Sequence[str]:
    names, title = [name for _, name in path], _bounded(title)
    return names if names and names[0] == title else [title, *names]


def _pieces(part: Part, room: int) -> Iterator[_Piece]:
    """The part whole if it fits, else in pieces that do."""
    text = part.text.strip("\n").rstrip() if part.kind is PartKind.CODE else part.text.strip()
    is_prose = part.kind is PartKind.PARAGRAPH
    if len(text) <= (min(TARGET, room) if is_prose else room):
        yield _Piece(text, is_prose=is_prose)
    elif is_prose:
        sentences = _joined(_sentences(text), min(TARGET, room) // 2, room, glue=" ")
        yield from (_Piece(each, is_prose=True, goes_on=count > 0) for count, each in enumerate(sentences))
    elif part.kind is PartKind.TABLE:
        yield from map(_Piece, _table_pieces(text, room))
    else:
        yield from map(_Piece, _joined(text.split("\n"), TARGET, room, glue="\n"))


def _sentences(text: str) -> list[str]:
    """
    >>> _sentences("One. Two!\\nThree")
    ['One.', 'Two!', 'Three']
    """
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def _table_pieces(text: str, room: int) -> Iterator[str]:
    """Rows in groups, each under the table's own head; a head too long to repeat is not."""
    lines = text.split("\n")
    depth = 2 if len(lines) > 1 and set(lines[1]) <= set("|-: ") and "-" in lines[1] else 1
    head = "\n".join(lines[:depth])
    if len(head) > room // 3:
        yield from _joined(lines, TARGET, room, glue="\n")
        return
    for rows in _joined(lines[depth:], TARGET - len(head) - 1, room - len(head) - 1, glue="\n"):
        yield f"{head}\n{rows}"


def _joined(texts: Iterable[str], target: int, most: int, *, glue: str) -> Iterator[str]:
    """Neighbours put together up to `target` characters; what is longer than `most` alone is cut."""
    held = ""
    for text in (piece for whole in texts for piece in _cut(whole, most)):
        if held and len(held) + len(glue) + len(text) > target:
            yield held
            held = text
        else:
            held = f"{held}{glue}{text}" if held else text
    if held:
        yield held


def _cut(text: str, most: int) -> Iterator[str]:
    """At white space where there is some."""
    start = 0
    while len(text) - start > most:
        border = text.rfind(" ", start + most // 2, start + most + 1)
        border = border if border > 0 else start + most
        yield text[start:border].rstrip()
        space = _SPACE.match(text, border)
        start = space.end() if space else border
    yield text[start:]


def _packed(pieces: Sequence[_Piece], target: int, most: int) -> Iterator[str]:
    """Pieces put together into passages; prose that goes on in the next one is repeated there by its last sentences."""
    held: list[_Piece] = []
    size = 0
    for piece in pieces:
        if held and size + 2 + len(piece.text) > target:
            yield _body(held)
            tail = _tail(held[-1], min(OVERLAP, most - len(piece.text) - 2)) if piece.is_prose else ""
            held = [_Piece(tail, is_prose=True)] if tail else []
            size = len(tail)
        size += len(piece.text) + (2 if held else 0)
        held.append(piece)
    if held:
        yield _body(held)


def _body(pieces: Sequence[_Piece]) -> str:
    first, *rest = pieces
    return first.text + "".join(f"{' ' if piece.goes_on else PARAGRAPH}{piece.text}" for piece in rest)


def _tail(piece: _Piece, most: int) -> str:
    """The last sentences of a piece of prose, whole, as many as fit; the last words when not even one does."""
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
