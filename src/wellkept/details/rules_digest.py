"""Digest of a large text in a few hundred characters without a model: kind, size, errors, first and last lines.

A text is read once, piece by piece, so that a log of 100 MB needs only a few hundred kilobytes of memory. Each piece is
searched as a whole for the few words that make a line interesting; only lines that contain one are examined further.
Quoted lines are free of credentials, because a digest is meant for prompts.
"""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wellkept.prompt.rules_tokens import byte_size
from wellkept.secrets import rules_scan as scan

MAX_NAME_CHARS = 40
SAMPLE_LINES = 60


class ContentKind(StrEnum):
    """Kind of a text, named as in summaries."""

    JSON = "JSON"
    JSON_LINES = "JSON lines"
    TABLE = "table"
    DIFF = "diff"
    STACK_TRACE = "stack trace"
    LOG = "log"
    HTML = "HTML"
    XML = "XML"
    CODE = "source code"
    TEXT = "text"


ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ANSI escape sequences."""

STAMP = re.compile(
    r"[\[(<\"']{0,2}(?:\d{4}[-/.]\d\d[-/.]\d\d[T_ ,]|\d\d[-/.]\d\d[-/.]\d{4} |\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:|\d{10}[.\d ]|[\d.]{7,15} \S+ \S+ \[\d\d/)"
)
LEVEL = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE|VERBOSE)\b"
    r"|^(?:npm|yarn|pip|cargo|info|warn|warning|error|debug)(?:[:!\]]| (?:ERR!|WARN|warn|error|notice)\b)"
    r"|\blevel=\w+|\"level\":"
)
_DIFF_START = re.compile(r"diff --git |diff -|Index: |--- \S|From [0-9a-f]{40} |commit [0-9a-f]{40}")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_TRACE_HEAD = re.compile(
    r"\s*(?:Traceback \(most recent call last\):|Exception in thread |panic: |goroutine \d+ \["
    r"|thread '.*' panicked at|(?:Uncaught )?[\w.$]+(?:Error|Exception)\b(?::|$))"
)
_FRAME = re.compile(r"\s+(?:at \S|File \".*\", line \d+|from \S+:\d+:in |\d+: +0x|in \S+ \()")
_MARKUP = re.compile(r"<[A-Za-z_][\w:.-]*[\s/>]|<\?xml |<!--|<!doctype ", re.IGNORECASE)
_HTML = re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE)
_CODE = re.compile(
    r"(?:import \w|from [\w.]+ import |def \w+\(|class \w+[:({ ]|async def |#include [<\"]|#!/|package [\w.]+;?$"
    r"|func \w*\(|fn \w+[<(]|(?:pub |use |impl |struct |enum |interface |namespace |using )\w"
    r"|(?:export )?(?:const|let|var|function) \w|(?:public|private|protected|static) \w|<\?php)"
)
_ALIGNED = re.compile(r"\s{2,}")
_DELIMITERS = (",", "\t", ";", "|")


def detect_kind(lines: Sequence[str]) -> ContentKind:
    """Detect the kind of a text from its first lines; whole JSON documents are detected by `JsonShape`.

    >>> detect_kind(["2026-01-31T12:00:00Z INFO started", "2026-01-31T12:00:01Z ERROR no disk"]).value
    'log'
    """
    sample = [line for line in lines if line.strip()][:SAMPLE_LINES]
    if not sample:
        return ContentKind.TEXT
    if _is_diff(sample):
        return ContentKind.DIFF
    if _is_json_lines(sample):
        return ContentKind.JSON_LINES
    if _is_trace(sample):
        return ContentKind.STACK_TRACE
    if _MARKUP.match(sample[0].lstrip()):
        is_html = any(_HTML.search(line) for line in sample[:5])
        return ContentKind.HTML if is_html else ContentKind.XML
    # A timestamp or a level in 30 % of the lines marks a log.
    if _share(sample, lambda line: bool(STAMP.match(line) or LEVEL.search(line[:120]))) >= 0.3:
        return ContentKind.LOG
    if find_columns(sample):
        return ContentKind.TABLE
    if sum(_CODE.match(line) is not None for line in sample) >= max(2, len(sample) // 20):
        return ContentKind.CODE
    return ContentKind.TEXT


def find_columns(lines: Sequence[str]) -> list[str]:
    """Return the column names if these lines are a table: separated values, Markdown, or aligned capital headers.

    >>> find_columns(["id,name", '1,"Ann, the first"', "2,Bob"])
    ['id', 'name']
    >>> find_columns(["NAME   READY   STATUS", "web-1  1/1     Running"])
    ['NAME', 'READY', 'STATUS']
    """
    sample = [line for line in lines if line.strip()][:SAMPLE_LINES]
    if len(sample) < 2:
        return []
    aligned = _ALIGNED.split(sample[0].strip())
    if len(aligned) >= 3 and all(name == name.upper() and name[0].isalpha() for name in aligned):
        return aligned
    if len(sample) < 3:
        return []
    for delimiter in _DELIMITERS:
        if delimiter not in sample[0]:
            continue
        try:
            rows = list(csv.reader(sample, delimiter=delimiter))
        except csv.Error:
            continue
        names = [name.strip() for name in rows[0]]
        if delimiter == "|" and sample[0].strip().startswith("|"):
            names = names[1:-1]
        is_header = all(name and len(name) <= MAX_NAME_CHARS for name in names) and len(set(names)) == len(names)
        if len(names) >= 2 and is_header and all(len(row) == len(rows[0]) for row in rows):
            return names
    return []


def _is_diff(lines: Sequence[str]) -> bool:
    return any(_DIFF_START.match(line) for line in lines[:30]) and any(_HUNK.match(line) for line in lines)


def _is_json_lines(lines: Sequence[str]) -> bool:
    if len(lines) < 2 or not all(line.lstrip().startswith(("{", "[")) for line in lines[:3]):
        return False
    try:
        return all(isinstance(json.loads(line), dict | list) for line in lines[:3])
    except (ValueError, RecursionError):
        return False


def _is_trace(lines: Sequence[str]) -> bool:
    frames = sum(_FRAME.match(line) is not None for line in lines)
    return any(_TRACE_HEAD.match(line) for line in lines[:5]) and frames >= 1 and frames >= len(lines) // 4


def _share(lines: Sequence[str], predicate: Callable[[str], bool]) -> float:
    return sum(predicate(line) for line in lines) / len(lines)


KEPT_FIRST = 3
KEPT_LAST = 2
MAX_EXAMINED_CHARS = 1000
"""Characters of a line that are examined; anything further in a very long line is content."""

WORDS = ("error", "fail", "exception", "fatal", "panic", "critical", "err!")

_ERROR = re.compile(
    r"(?:errors?|exceptions?|err!)(?![a-z_])|(?<![a-z])(?:fatal|panic(?:ked)?|critical|fail(?:ed|ures?|s)?)(?![a-z_])"
)
_WARNING = re.compile(r"(?:warn(?:ings?)?|deprecat(?:ed|ion))(?![a-z_])")
_NEGATED_BEFORE = re.compile(r"\b(?:0|no|zero|without|without any) (?:[a-z]+ )?$")
_NEGATED_AFTER = re.compile(r"[\"']?\s*[:=]\s*[\"']?(?:0\b|none|null|false|\[\])")
_CALM = re.compile(
    r"(?:^|[\s\[<(|])(?:TRACE|DEBUG|INFO|NOTICE|VERBOSE)(?=[\s\]>):|]|$)|[\[<](?:trace|debug|info|notice)[\]>]"
    r"|\blevel[\"']?\s*[=:]\s*[\"']?(?:trace|debug|info|notice)\b"
)
_SOURCE_LINE = re.compile(r"\s+(?:raise |throw |at |File \"|except |catch )|\s*\"?(?:error|fail)\w*\"?: *\w*[\[{]")
_EXCEPTION = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |Caused by: |Uncaught )?"
    r"[A-Za-z_][\w.$]*(?:Error|Exception|Interrupt)\b(?:: .*)?$"
    r"|panic: .*|thread '.*' panicked at .*"
)
CALM_CHARS = 120
BEFORE_CHARS = 24


class ErrorLines:
    """Streaming collector of lines that report errors, with their numbers; it is fed whole lines."""

    def __init__(self) -> None:
        self.count = 0
        self.exception = ""  # the last line that names an exception
        self._first: list[tuple[int, str]] = []
        self._last: deque[tuple[int, str]] = deque(maxlen=KEPT_LAST)
        self._breaks = 0  # line breaks in earlier pieces

    @property
    def lines(self) -> list[tuple[int, str]]:
        """The first and last few of the lines."""
        return [*self._first, *self._last]

    def feed(self, text: str) -> None:
        """Read the next piece, which starts at a line start or inside a line longer than a piece."""
        # "İ" is the only letter whose lower case has another length.
        folded = text.replace("İ", "I").lower()
        number, at = self._breaks + 1, 0
        for start in _interesting_lines(folded):
            number += text.count("\n", at, start)
            at = start
            end = text.find("\n", start, start + MAX_EXAMINED_CHARS)
            end = start + MAX_EXAMINED_CHARS if end < 0 else end
            if _is_error(text[start:end], folded[start:end]):
                self._add(number, text[start:end])
        self._breaks += text.count("\n")

    def _add(self, number: int, line: str) -> None:
        if self.lines and self.lines[-1][0] == number:
            # The line is longer than a piece.
            return
        self.count += 1
        (self._first if len(self._first) < KEPT_FIRST else self._last).append((number, line))
        if _EXCEPTION.match(line):
            self.exception = line


def _is_error(line: str, folded: str) -> bool:
    """Return True if a line reports an error: not "0 errors", no warning of one, and no message of a lower level."""
    found = next((each for each in _ERROR.finditer(folded) if not _is_negated(folded, *each.span())), None)
    if found is None or _SOURCE_LINE.match(line) or _CALM.search(line[:CALM_CHARS]):
        return False
    return _WARNING.search(folded, 0, found.start()) is None


def _is_negated(line: str, start: int, end: int) -> bool:
    before = line[max(0, start - BEFORE_CHARS) : start]
    return _NEGATED_AFTER.match(line, end) is not None or _NEGATED_BEFORE.search(before) is not None


def _interesting_lines(folded: str) -> Sequence[int]:
    """Return the start of each line that contains one of the words, in order."""
    starts = set()
    for word in WORDS:
        at = folded.find(word)
        while at >= 0:
            starts.add(folded.rfind("\n", 0, at) + 1)
            end = folded.find("\n", at)
            at = folded.find(word, end) if end >= 0 else -1
    return sorted(starts)


PIECE_CHARS = 128 * 1024
HEAD_CHARS = 32 * 1024
"""Length of the beginning that determines the kind."""

TAIL_CHARS = 4096
MAX_LINE_CHARS = 120
MAX_TEXT_CHARS = 700
MAX_BRIEF_CHARS = 120
MAX_JSON_CHARS = 2_000_000
"""Maximum length of a JSON document whose keys and entries are described; a longer one is not kept to be parsed."""

MAX_NAMES = 12
QUOTED_LINES = 2
"""Number of errors that are quoted besides the last one."""

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]\dtfn-])')
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_CHANGED_FILE = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]{1,300})", re.MULTILINE)
_REPORTING = {
    ContentKind.LOG,
    ContentKind.TEXT,
    ContentKind.STACK_TRACE,
    ContentKind.JSON_LINES,
    ContentKind.TABLE,
}
"""Kinds in which a line with the word "error" reports an error."""

_SHAPED = {ContentKind.JSON, ContentKind.TABLE, ContentKind.DIFF, ContentKind.STACK_TRACE}
"""Kinds described by their shape rather than by their first and last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDigest:
    """Digest of a text. Line numbers start at 1."""

    kind: ContentKind
    chars: int
    lines: int
    size: int  # bytes in UTF-8
    error_count: int
    errors: Sequence[tuple[int, str]]  # the first and last few, with line numbers
    first_line: str
    last_line: str
    shape: str  # details of its kind: keys, columns, files, the exception

    @property
    def text(self) -> str:
        """Short summary, most informative sentences first; those that do not fit are left out."""
        kind = self.kind.value
        text = f"{kind[0].upper()}{kind[1:]}, {_pluralize(self.lines, 'line')}, {format_size(self.size)}."
        for sentence in self._sentences():
            if len(text) + 1 + len(sentence) <= MAX_TEXT_CHARS:
                text += f" {sentence}"
        return text

    @property
    def brief(self) -> str:
        """One line for a placeholder."""
        if self.shape and self.kind is not ContentKind.STACK_TRACE:
            parts = [self.kind.value, self.shape, format_size(self.size)]
        else:
            errors = _pluralize(self.error_count, "error") if self.error_count and not self.shape else ""
            parts = [self.kind.value, _pluralize(self.lines, "line"), format_size(self.size), errors, self.shape]
        return clip(", ".join(filter(None, parts)), MAX_BRIEF_CHARS)

    def _sentences(self) -> Iterator[str]:
        if self.shape:
            yield f"{self.shape[0].upper()}{self.shape[1:]}."
        if self.error_count:
            lines = [*self.errors[:QUOTED_LINES], *(self.errors[-1:] if len(self.errors) > QUOTED_LINES else [])]
            quoted = "; ".join(f"line {number:,}: {line}" for number, line in lines)
            yield f"{_pluralize(self.error_count, 'error')}: {quoted}."
        if self.kind not in _SHAPED:
            if self.first_line:
                yield f"Begins: {self.first_line}"
            if self.lines > 1 and self.last_line:
                yield f"Ends: {self.last_line}"


class TextDigester:
    """Streaming reader of a text; `finish` returns its digest."""

    def __init__(self) -> None:
        self.head = ""  # beginning of the text
        self.tail = ""  # end of the text
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._chars = 0
        self._size = 0
        self._breaks = 0
        self._pending = ""  # the unfinished last line
        self._kind: ContentKind | None = None
        self._json: list[str] | None = None  # the text, if it may be a JSON document that is not too long
        self._errors = ErrorLines()

    def feed(self, text: str) -> None:
        """Read the next piece, of any length."""
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars >= PIECE_CHARS:
            self._read()

    def finish(self) -> TextDigest:
        """Return the digest. Nothing can be fed afterwards."""
        self._read()
        shape = self._describe_json()
        kind = ContentKind.JSON if shape else self._kind or ContentKind.TEXT
        if kind in _REPORTING:
            self._errors.feed(self._pending)
        lines = self._breaks + (1 if self.tail and not self.tail.endswith("\n") else 0)
        return TextDigest(
            kind=kind,
            chars=self._chars,
            lines=lines,
            size=self._size,
            error_count=self._errors.count if kind in _REPORTING else 0,
            errors=[(number, quote_line(line)) for number, line in self._errors.lines if kind in _REPORTING],
            first_line=_quote_first(self.head.splitlines()),
            last_line=_quote_first(reversed(self.tail.splitlines())),
            shape=shape or self._describe_shape(kind, lines),
        )

    def _read(self) -> None:
        text = "".join(self._waiting)
        self._waiting, self._waiting_chars = [], 0
        if self._kind is None:
            self.head = text[:HEAD_CHARS]
            lines = [ANSI.sub("", line) for line in self.head.split("\n")]
            # The last line may be incomplete.
            self._kind = detect_kind(lines if len(text) <= HEAD_CHARS or len(lines) == 1 else lines[:-1])
            self._json = [] if _JSON_START.match(text) else None
        self._chars += len(text)
        self._size += byte_size(text)
        self._breaks += text.count("\n")
        self.tail = (self.tail + text)[-TAIL_CHARS:]
        if self._json is not None:
            self._json = [*self._json, text] if self._chars <= MAX_JSON_CHARS else None
        self._pending += text
        # Lines longer than a piece are split anywhere.
        end = self._pending.rfind("\n") + 1 or (len(self._pending) if len(self._pending) > PIECE_CHARS else 0)
        if self._kind in _REPORTING:
            self._errors.feed(self._pending[:end])
        self._pending = self._pending[end:]

    def _describe_json(self) -> str:
        """Return the shape of the JSON document that the text is; empty if it is none."""
        if self._json is None:
            ends = self.head.lstrip()[:1] + self.tail.rstrip()[-1:]
            is_long = self._chars > MAX_JSON_CHARS and self._kind is ContentKind.TEXT
            return {"{}": "object", "[]": "array"}.get(ends, "") if is_long else ""
        try:
            found = json.loads("".join(self._json), strict=False)
        except (ValueError, RecursionError):
            return ""
        if isinstance(found, list):
            return f"array of {_pluralize(len(found), 'entry', 'entries')}"
        return f"object with {_pluralize(len(found), 'key')}{_join_names(found)}"

    def _describe_shape(self, kind: ContentKind, lines: int) -> str:
        match kind:
            case ContentKind.JSON_LINES:
                first = json.loads(ANSI.sub("", next(line for line in self.head.split("\n") if line.strip())))
                return f"{_pluralize(lines, 'record')}{_join_names(first if isinstance(first, dict) else ())}"
            case ContentKind.TABLE:
                names = _join_names(find_columns(self.head.splitlines()))
                return f"{_pluralize(max(0, lines - 1), 'row')}, columns{names}"
            case ContentKind.DIFF:
                return f"files{_join_names(_CHANGED_FILE.findall(self.head))}"
            case ContentKind.STACK_TRACE:
                return quote_line(self._errors.exception)
        return ""


def clip(text: str, most: int) -> str:
    """Cut a text to its first characters, with a mark at the end."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def quote_line(line: str) -> str:
    """Prepare a line for a summary: no colours, control characters or credentials, and a bounded length.

    >>> quote_line("\\x1b[31mERR\\x1b[0m  building   10%\\rbuilding 100%")
    'building 100%'
    """
    clean = _INVISIBLE.sub(" ", ANSI.sub("", line[: MAX_LINE_CHARS * 8]).rstrip("\r\n").rpartition("\r")[2])
    clean = " ".join(clean.split())
    return clip(scan.redact(clean, scan.find_secrets(clean)), MAX_LINE_CHARS)


def _quote_first(lines: Iterable[str]) -> str:
    """Quote the first of these lines that is not blank; empty if all are."""
    return quote_line(next((line for line in lines if line.strip()), ""))


def format_size(size: int) -> str:
    """Format a size in bytes.

    >>> format_size(900), format_size(53_000), format_size(104_857_600)
    ('900 bytes', '53 KB', '105 MB')
    """
    if size < 1000:
        return _pluralize(size, "byte")
    amount, unit = (size / 1000, "KB") if size < 1_000_000 else (size / 1_000_000, "MB")
    return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"


def _join_names(names: Collection[str]) -> str:
    if not names:
        return ""
    return (
        ": "
        + ", ".join(quote_line(name[:MAX_NAME_CHARS]) for name in [*names][:MAX_NAMES])
        + (", …" if len(names) > MAX_NAMES else "")
    )


def _pluralize(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
