"""Find lines that report errors or warnings in streamed output.

Each piece is searched as a whole for the few words that make a line interesting; only lines that contain one are
examined further.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

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
_FRAME = re.compile(r"\s+(?:raise |throw |at |File \"|except |catch )|\s*\"?(?:error|fail)\w*\"?: *\w*[\[{]")
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
        if _FRAME.match(original):
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
