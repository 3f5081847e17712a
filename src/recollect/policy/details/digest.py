"""What a large text is, in a few hundred characters and without a model: its kind, its size, its errors, its ends.

A text is read once, piece by piece, in bounded memory, so that a log of 100 MB costs no more than a few hundred
kilobytes. Whatever of it is quoted has no credentials in it: a summary is made to be put into prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.lazy import LazyModule
from recollect.policy.details.content_kinds import ANSI, ContentKind, columns, kind_of
from recollect.policy.details.error_lines import ErrorLines, Noted
from recollect.policy.details.json_shape import JsonShape
from recollect.policy.prompt.tokens import byte_size

if TYPE_CHECKING:
    from recollect.policy.secrets import scan
else:
    scan = LazyModule("recollect.policy.secrets.scan")

PIECE_CHARS = 128 * 1024
HEAD_CHARS = 32 * 1024
"""How much of the beginning tells the kind."""

TAIL_CHARS = 4096
MAX_LINE_CHARS = 120
MAX_TEXT_CHARS = 700
MAX_BRIEF_CHARS = 120
MAX_FILES = 6
QUOTED = 2
"""How many lines are quoted of each end, and of errors and warnings beside the last."""

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]\dtfn-])')
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_ROOT = re.compile(r"<([A-Za-z_][\w:.-]*)")
_REPORTING = {
    ContentKind.LOG,
    ContentKind.TEXT,
    ContentKind.STACK_TRACE,
    ContentKind.JSON_LINES,
    ContentKind.TABLE,
}
"""Kinds in which a line with the word "error" reports one."""

_SHAPED = {ContentKind.JSON, ContentKind.TABLE, ContentKind.DIFF, ContentKind.STACK_TRACE}
"""Kinds whose shape says more than their first and last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """What there is to say about a text. Lines have their numbers, counted from 1."""

    kind: ContentKind
    chars: int
    lines: int
    size: int  # bytes in UTF-8
    error_count: int
    errors: Sequence[tuple[int, str]]  # the first few and the last few
    warning_count: int
    warnings: Sequence[tuple[int, str]]
    first_lines: Sequence[str]
    last_lines: Sequence[str]
    shape: str  # what is particular to its kind: keys, columns, files, the exception
    text: str  # all of it as a short summary
    brief: str  # one line of it, for a placeholder


class Digest:
    """Reads a text piece by piece; `finish` says what it was."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._chars = 0
        self._size = 0
        self._breaks = 0
        self.head = ""  # how it begins
        self.tail = ""  # how it ends
        self._cut = ""  # the line that has not ended yet
        self._kind: ContentKind | None = None
        self._json: JsonShape | None = None
        self._reports = ErrorLines()
        self._diff = _DiffCount()

    def feed(self, text: str) -> None:
        """The next piece, of any length."""
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars >= PIECE_CHARS:
            waiting = "".join(self._waiting)
            whole = len(waiting) // PIECE_CHARS * PIECE_CHARS
            for at in range(0, whole, PIECE_CHARS):
                self._read(waiting[at : at + PIECE_CHARS])
            self._waiting, self._waiting_chars = [waiting[whole:]], len(waiting) - whole

    def finish(self) -> Digested:
        """What the text was. Nothing can be fed afterwards."""
        self._read("".join(self._waiting))
        self._scan(self._cut)
        self._waiting, self._cut = [], ""
        kind = ContentKind.JSON if self._json is not None and self._json.is_whole else self._kind or ContentKind.TEXT
        lines = self._breaks + (1 if self.tail and not self.tail.endswith("\n") else 0)
        reports = (self._reports.errors, self._reports.warnings) if kind in _REPORTING else (Noted(), Noted())
        errors, warnings = ([(number, quoted(line)) for number, line in each.lines] for each in reports)
        shape = self._shape(kind, lines)
        said = Digested(
            kind=kind,
            chars=self._chars,
            lines=lines,
            size=self._size,
            error_count=reports[0].count,
            errors=errors,
            warning_count=reports[1].count,
            warnings=warnings,
            first_lines=_some_lines(self.head.splitlines()),
            last_lines=_some_lines(self.tail.splitlines()[::-1])[::-1],
            shape=shape,
            text="",
            brief=_brief(kind, lines, self._size, reports[0].count, shape),
        )
        return _with_text(said)

    def _read(self, text: str) -> None:
        if self._kind is None:
            self.head = text[:HEAD_CHARS]
            self._kind = kind_of(_whole_lines(self.head, is_all=len(text) <= HEAD_CHARS))
            self._json = JsonShape() if _JSON_START.match(text) else None
        self._chars += len(text)
        self._size += byte_size(text)
        self._breaks += text.count("\n")
        self.tail = (self.tail + text)[-TAIL_CHARS:]
        if self._json is not None:
            self._json.feed(text)
            if self._json.is_broken:
                self._json = None
        end = text.rfind("\n") + 1
        if end or len(self._cut) > PIECE_CHARS:  # lines that are longer than a piece are cut anywhere
            end = end or len(text)
            self._scan(self._cut + text[:end])
            self._cut = ""
        self._cut += text[end:]

    def _scan(self, text: str) -> None:
        if self._kind is ContentKind.DIFF:
            self._diff.feed(text)
        elif self._kind in _REPORTING:
            self._reports.feed(text)

    def _shape(self, kind: ContentKind, lines: int) -> str:
        if kind is ContentKind.JSON and self._json is not None:
            names = _listed(self._json.keys, self._json.entries)
            if self._json.is_object:
                return f"object with {_counted(self._json.entries, 'key')}{names}"
            return f"array of {_counted(self._json.entries, 'entry', 'entries')}"
        if kind is ContentKind.JSON_LINES:
            return f"{_counted(lines, 'record')}{_listed(_first_keys(self.head), 0)}"
        if kind is ContentKind.TABLE:
            return f"{_counted(max(0, lines - 1), 'row')}, columns{_listed(columns(self.head.splitlines()), 0)}"
        if kind is ContentKind.DIFF:
            return self._diff.shape()
        if kind is ContentKind.STACK_TRACE:
            return quoted(self._reports.exception)
        found = (_TITLE if kind is ContentKind.HTML else _ROOT).search(self.head)
        if found and kind in (ContentKind.HTML, ContentKind.XML):
            return f"titled {quoted(found[1])}" if kind is ContentKind.HTML else f"root element {quoted(found[1])}"
        return ""


class _DiffCount:
    """The files of a diff and how many lines come and go."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._file_count = 0
        self._added = 0
        self._removed = 0

    def feed(self, text: str) -> None:
        text = "\n" + text
        headers = text.count("\n+++ ")
        self._file_count += headers
        self._added += text.count("\n+") - headers
        self._removed += text.count("\n-") - text.count("\n--- ")
        at = text.find("\n+++ ")
        while at >= 0 and len(self._files) < MAX_FILES:
            name = text[at + 5 : at + 300].split("\n")[0].split("\t")[0].strip()
            self._files.append(quoted(name.removeprefix("b/")))
            at = text.find("\n+++ ", at + 1)

    def shape(self) -> str:
        changed = f"+{self._added:,} -{self._removed:,}"
        return f"{_counted(self._file_count, 'file')}{_listed(self._files, self._file_count)}, {changed}"


def quoted(line: str) -> str:
    """A line as it may stand in a summary: no colours, no control characters, no credentials, not too long.

    >>> quoted("\\x1b[31mERR\\x1b[0m  building   10%\\rbuilding 100%")
    'building 100%'
    """
    shown = _UNSEEN.sub(" ", ANSI.sub("", line[: MAX_LINE_CHARS * 8]).rstrip("\r\n").rpartition("\r")[2])
    shown = " ".join(shown.split())
    shown = scan.redact(shown, scan.find_secrets(shown))
    return shown if len(shown) <= MAX_LINE_CHARS else shown[: MAX_LINE_CHARS - 1].rstrip() + "…"


def size_text(size: int) -> str:
    """
    >>> size_text(900), size_text(53_000), size_text(104_857_600)
    ('900 bytes', '53 KB', '105 MB')
    """
    if size < 1000:
        return _counted(size, "byte")
    amount, unit = (size / 1000, "KB") if size < 1_000_000 else (size / 1_000_000, "MB")
    return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"


def _with_text(said: Digested) -> Digested:
    return Digested(**{name: getattr(said, name) for name in Digested.__slots__} | {"text": _text(said)})


def _text(said: Digested) -> str:
    """The summary, the most telling first; what does not fit is left out."""
    text = f"{said.kind.value[0].upper()}{said.kind.value[1:]}, {_counted(said.lines, 'line')}, {size_text(said.size)}."
    for sentence in _sentences(said):
        if len(text) + 1 + len(sentence) <= MAX_TEXT_CHARS:
            text += f" {sentence}"
    return text


def _sentences(said: Digested) -> Iterator[str]:
    if said.shape:
        yield f"{said.shape[0].upper()}{said.shape[1:]}."
    for count, lines, what in (
        (said.error_count, said.errors, "error"),
        (said.warning_count, said.warnings, "warning"),
    ):
        if count:
            shown = [*lines[:QUOTED], *(lines[-1:] if len(lines) > QUOTED else [])]
            yield f"{_counted(count, what)}: " + "; ".join(f"line {number:,}: {line}" for number, line in shown) + "."
    if said.kind not in _SHAPED:
        if said.first_lines:
            yield f"Begins: {said.first_lines[0]}"
        if said.lines > 1 and said.last_lines:
            yield f"Ends: {said.last_lines[-1]}"


def _brief(kind: ContentKind, lines: int, size: int, errors: int, shape: str) -> str:
    if shape and kind is not ContentKind.STACK_TRACE:
        text = f"{kind.value}, {shape}, {size_text(size)}"
    else:
        text = f"{kind.value}, {_counted(lines, 'line')}, {size_text(size)}"
        text += f", {_counted(errors, 'error')}" if errors and not shape else ""
        text += f", {shape}" if shape else ""
    return text if len(text) <= MAX_BRIEF_CHARS else text[: MAX_BRIEF_CHARS - 1].rstrip() + "…"


def _whole_lines(head: str, *, is_all: bool) -> list[str]:
    """The lines of the head as they look in a terminal, without the one that may have been cut."""
    lines = [ANSI.sub("", line) for line in head.split("\n")]
    return lines if is_all or len(lines) == 1 else lines[:-1]


def _some_lines(lines: Sequence[str]) -> list[str]:
    shown = (quoted(line) for line in lines if line.strip())
    return [line for line, _ in zip(shown, range(QUOTED), strict=False)]


def _first_keys(head: str) -> list[str]:
    shape = JsonShape()
    shape.feed(next((line for line in head.split("\n") if line.strip()), ""))
    return shape.keys


def _listed(names: Sequence[str], count: int) -> str:
    if not names:
        return ""
    more = ", …" if count > len(names) else ""
    return ": " + ", ".join(quoted(name) for name in names) + more


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
