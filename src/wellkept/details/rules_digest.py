"""Digest of a large text in a few hundred characters without a model: kind, size, errors, first and last lines.

A text is read once, piece by piece, so that a log of 100 MB needs only a few hundred kilobytes of memory. Quoted lines
are free of credentials, because a digest is meant for prompts.

Find lines that report errors or warnings in streamed output.

Each piece is searched as a whole for the few words that make a line interesting; only lines that contain one are
examined further.
"""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
        return _clip_names(aligned)
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
            return _clip_names(names)
    return []


def _clip_names(names: Sequence[str]) -> list[str]:
    return [name[:MAX_NAME_CHARS] for name in names]


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

WORDS = ("error", "fail", "exception", "fatal", "panic", "critical", "err!", "warn", "deprecat")

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
CALM_WORDS = ("info", "debug", "trace", "notice", "verbose")
BEFORE_CHARS = 24


class LineSample:
    """Number of reported lines, with the first and last few of them and their line numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, str]] = []
        self._last: deque[tuple[int, str]] = deque(maxlen=KEPT_LAST)

    def add(self, number: int, line: str) -> None:
        self.count += 1
        (self._first if len(self._first) < KEPT_FIRST else self._last).append((number, line))

    @property
    def lines(self) -> list[tuple[int, str]]:
        return [*self._first, *self._last]


class ErrorLines:
    """Streaming collector of reporting lines; it is fed whole lines."""

    def __init__(self) -> None:
        self.errors = LineSample()
        self.warnings = LineSample()
        self.exception = ""  # the last line that names an exception
        self._breaks = 0  # line breaks in earlier pieces
        self._last_recorded = 0  # number of the last recorded line

    def feed(self, text: str) -> None:
        """Read the next piece, which starts at a line start or inside a line longer than a piece."""
        # "İ" is the only letter whose lower case has another length.
        folded = text.replace("İ", "I").lower()
        number, at = self._breaks + 1, 0
        for start in _interesting_lines(folded):
            number += text.count("\n", at, start)
            at = start
            if number != self._last_recorded:
                self._examine(number, text, folded, start)
        self._breaks += text.count("\n")

    def _examine(self, number: int, text: str, folded: str, start: int) -> None:
        end = text.find("\n", start, start + MAX_EXAMINED_CHARS)
        end = start + MAX_EXAMINED_CHARS if end < 0 else end
        line = folded[start:end]
        error = _find_report(_ERROR, line)
        warning = _find_report(_WARNING, line) if "warn" in line or "deprecat" in line else -1
        if max(error, warning) < 0:
            return
        original, beginning = text[start:end], line[:CALM_CHARS]
        if any(word in beginning for word in CALM_WORDS) and _CALM.search(original[:CALM_CHARS]):
            return
        if _SOURCE_LINE.match(original):
            return
        self._last_recorded = number
        if error < 0 or 0 <= warning < error:
            self.warnings.add(number, original)
        else:
            self.errors.add(number, original)
            if _EXCEPTION.match(original):
                self.exception = original


def _find_report(pattern: re.Pattern[str], line: str) -> int:
    """Return the position where the line reports a match, unless it says "0 errors" and the like; -1 if none."""
    for found in pattern.finditer(line):
        start, end = found.span()
        if not _NEGATED_AFTER.match(line, end) and not _NEGATED_BEFORE.search(
            line[max(0, start - BEFORE_CHARS) : start]
        ):
            return start
    return -1


def _interesting_lines(folded: str) -> Iterator[int]:
    """Return the start of each line that contains one of the words, in order."""
    starts = set()
    for word in WORDS:
        at = folded.find(word)
        while at >= 0:
            starts.add(folded.rfind("\n", 0, at) + 1)
            end = folded.find("\n", at)
            at = folded.find(word, end) if end >= 0 else -1
    return iter(sorted(starts))


PIECE_CHARS = 128 * 1024
HEAD_CHARS = 32 * 1024
"""Length of the beginning that determines the kind."""

TAIL_CHARS = 4096
MAX_LINE_CHARS = 120
MAX_TEXT_CHARS = 700
MAX_BRIEF_CHARS = 120
MAX_FILES = 6
MAX_JSON_CHARS = 2_000_000
"""Maximum length of a JSON document whose keys and entries are described; a longer one is not kept to be parsed."""

MAX_KEYS = 12
MAX_KEY_CHARS = 40
QUOTED_LINES = 2
"""Number of errors and of warnings that are quoted besides the last one."""

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]\dtfn-])')
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_ROOT = re.compile(r"<([A-Za-z_][\w:.-]*)")
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
    warning_count: int
    warnings: Sequence[tuple[int, str]]
    first_line: str
    last_line: str
    shape: str  # details of its kind: keys, columns, files, the exception
    text: str  # a short summary
    brief: str  # one line for a placeholder


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
        self._reports = ErrorLines()
        self._diff = _DiffCount()

    def feed(self, text: str) -> None:
        """Read the next piece, of any length."""
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars >= PIECE_CHARS:
            waiting = "".join(self._waiting)
            whole = len(waiting) // PIECE_CHARS * PIECE_CHARS
            for at in range(0, whole, PIECE_CHARS):
                self._read(waiting[at : at + PIECE_CHARS])
            self._waiting, self._waiting_chars = [waiting[whole:]], len(waiting) - whole

    def finish(self) -> TextDigest:
        """Return the digest. Nothing can be fed afterwards."""
        self._read("".join(self._waiting))
        self._scan(self._pending)
        self._waiting, self._pending = [], ""
        json_shape = self._describe_json()
        kind = ContentKind.JSON if json_shape else self._kind or ContentKind.TEXT
        lines = self._breaks + (1 if self.tail and not self.tail.endswith("\n") else 0)
        shape = json_shape or self._describe_shape(kind, lines)
        errors, warnings = (
            (self._reports.errors, self._reports.warnings) if kind in _REPORTING else (LineSample(), LineSample())
        )
        digest = TextDigest(
            kind=kind,
            chars=self._chars,
            lines=lines,
            size=self._size,
            error_count=errors.count,
            errors=[(number, quote_line(line)) for number, line in errors.lines],
            warning_count=warnings.count,
            warnings=[(number, quote_line(line)) for number, line in warnings.lines],
            first_line=_quote_first(self.head.splitlines()),
            last_line=_quote_first(reversed(self.tail.splitlines())),
            shape=shape,
            text="",
            brief=_build_brief(kind, lines, self._size, errors.count, shape),
        )
        return replace(digest, text=_build_text(digest))

    def _read(self, text: str) -> None:
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
        end = text.rfind("\n") + 1
        # Lines longer than a piece are split anywhere.
        if end or len(self._pending) > PIECE_CHARS:
            end = end or len(text)
            self._scan(self._pending + text[:end])
            self._pending = ""
        self._pending += text[end:]

    def _scan(self, text: str) -> None:
        if self._kind is ContentKind.DIFF:
            self._diff.feed(text)
        elif self._kind in _REPORTING:
            self._reports.feed(text)

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
        return f"object with {_pluralize(len(found), 'key')}{_join_names(_first_keys(found), len(found))}"

    def _describe_shape(self, kind: ContentKind, lines: int) -> str:
        if kind is ContentKind.JSON_LINES:
            first = json.loads(ANSI.sub("", next(line for line in self.head.split("\n") if line.strip())))
            return f"{_pluralize(lines, 'record')}{_join_names(_first_keys(first))}"
        if kind is ContentKind.TABLE:
            names = _join_names(find_columns(self.head.splitlines()))
            return f"{_pluralize(max(0, lines - 1), 'row')}, columns{names}"
        if kind is ContentKind.DIFF:
            return self._diff.describe()
        if kind is ContentKind.STACK_TRACE:
            return quote_line(self._reports.exception)
        if kind is ContentKind.HTML:
            return f"titled {quote_line(found[1])}" if (found := _TITLE.search(self.head)) else ""
        if kind is ContentKind.XML:
            return f"root element {quote_line(found[1])}" if (found := _ROOT.search(self.head)) else ""
        return ""


class _DiffCount:
    """Files of a diff, and its numbers of added and removed lines."""

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
            self._files.append(quote_line(name.removeprefix("b/")))
            at = text.find("\n+++ ", at + 1)

    def describe(self) -> str:
        names = _join_names(self._files, self._file_count)
        return f"{_pluralize(self._file_count, 'file')}{names}, +{self._added:,} -{self._removed:,}"


def quote_line(line: str) -> str:
    """Prepare a line for a summary: no colours, control characters or credentials, and a bounded length.

    >>> quote_line("\\x1b[31mERR\\x1b[0m  building   10%\\rbuilding 100%")
    'building 100%'
    """
    clean = _INVISIBLE.sub(" ", ANSI.sub("", line[: MAX_LINE_CHARS * 8]).rstrip("\r\n").rpartition("\r")[2])
    clean = " ".join(clean.split())
    clean = scan.redact(clean, scan.find_secrets(clean))
    return clean if len(clean) <= MAX_LINE_CHARS else clean[: MAX_LINE_CHARS - 1].rstrip() + "…"


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


def _build_text(digest: TextDigest) -> str:
    """Build the summary, most informative sentences first; sentences that do not fit are left out."""
    kind = digest.kind.value
    text = f"{kind[0].upper()}{kind[1:]}, {_pluralize(digest.lines, 'line')}, {format_size(digest.size)}."
    for sentence in _sentences(digest):
        if len(text) + 1 + len(sentence) <= MAX_TEXT_CHARS:
            text += f" {sentence}"
    return text


def _sentences(digest: TextDigest) -> Iterator[str]:
    if digest.shape:
        yield f"{digest.shape[0].upper()}{digest.shape[1:]}."
    for count, lines, noun in (
        (digest.error_count, digest.errors, "error"),
        (digest.warning_count, digest.warnings, "warning"),
    ):
        if count:
            quoted_lines = [*lines[:QUOTED_LINES], *(lines[-1:] if len(lines) > QUOTED_LINES else [])]
            quoted = "; ".join(f"line {number:,}: {line}" for number, line in quoted_lines)
            yield f"{_pluralize(count, noun)}: {quoted}."
    if digest.kind not in _SHAPED:
        if digest.first_line:
            yield f"Begins: {digest.first_line}"
        if digest.lines > 1 and digest.last_line:
            yield f"Ends: {digest.last_line}"


def _build_brief(kind: ContentKind, lines: int, size: int, errors: int, shape: str) -> str:
    if shape and kind is not ContentKind.STACK_TRACE:
        text = f"{kind.value}, {shape}, {format_size(size)}"
    else:
        text = f"{kind.value}, {_pluralize(lines, 'line')}, {format_size(size)}"
        text += f", {_pluralize(errors, 'error')}" if errors and not shape else ""
        text += f", {shape}" if shape else ""
    return text if len(text) <= MAX_BRIEF_CHARS else text[: MAX_BRIEF_CHARS - 1].rstrip() + "…"


def _first_keys(found: Mapping[str, object] | Sequence[object]) -> list[str]:
    return [name[:MAX_KEY_CHARS] for name in [*found][:MAX_KEYS]] if isinstance(found, Mapping) else []


def _join_names(names: Sequence[str], count: int = 0) -> str:
    if not names:
        return ""
    more = ", …" if count > len(names) else ""
    return ": " + ", ".join(quote_line(name) for name in names) + more


def _pluralize(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
