"""Lines of output that report an error or a warning, found while the text streams by.

Most lines are never looked at one by one: the few words that make a line interesting are searched for in a whole piece
at once, and only lines that hold one are judged.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

KEPT_FIRST = 3
KEPT_LAST = 2
MAX_JUDGED_CHARS = 1000
"""A report begins near the beginning of its line; what lies further in a very long line is content."""

WORDS = ("error", "fail", "exception", "fatal", "panic", "critical", "err!", "warn", "deprecat")

_ERROR = re.compile(
    r"(?:errors?|exceptions?|err!)(?![a-z_])|(?<![a-z])(?:fatal|panic(?:ked)?|critical|fail(?:ed|ures?|s)?)(?![a-z_])"
)
_WARNING = re.compile(r"(?:warn(?:ings?)?|deprecat(?:ed|ion))(?![a-z_])")
_NONE_BEFORE = re.compile(r"\b(?:0|no|zero|without|without any) (?:[a-z]+ )?$")
_NONE_AFTER = re.compile(r"[\"']?\s*[:=]\s*[\"']?(?:0\b|none|null|false|\[\])")
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


class Noted:
    """How many lines there were of a kind, the first few and the last few, each with its number."""

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
    """Reads whole lines, piece by piece, and notes those that report something."""

    def __init__(self) -> None:
        self.errors = Noted()
        self.warnings = Noted()
        self.exception = ""  # the last line that names one
        self._breaks = 0  # line breaks in earlier pieces
        self._judged = 0  # the number of the last line that was noted

    def feed(self, text: str) -> None:
        """The next piece. It begins at the beginning of a line, or in one that is longer than a piece."""
        folded = text.replace("İ", "I").lower()  # the one letter that would change the length
        number, at = self._breaks + 1, 0
        for start in _line_starts(folded):
            number += text.count("\n", at, start)
            at = start
            if number != self._judged:
                self._judge(number, text, folded, start)
        self._breaks += text.count("\n")

    def _judge(self, number: int, text: str, folded: str, start: int) -> None:
        end = text.find("\n", start, start + MAX_JUDGED_CHARS)
        end = start + MAX_JUDGED_CHARS if end < 0 else end
        line = folded[start:end]
        error = _reported(_ERROR, line)
        warning = _reported(_WARNING, line) if "warn" in line or "deprecat" in line else -1
        if max(error, warning) < 0:
            return
        original, beginning = text[start:end], line[:CALM_CHARS]
        if any(word in beginning for word in CALM_WORDS) and _CALM.search(original[:CALM_CHARS]):
            return
        if _FRAME.match(original):
            return
        self._judged = number
        if error < 0 or 0 <= warning < error:
            self.warnings.add(number, original)
        else:
            self.errors.add(number, original)
            if _EXCEPTION.match(original):
                self.exception = original


def _reported(pattern: re.Pattern[str], line: str) -> int:
    """Where the line reports what the pattern names, other than that there is none of it; -1 if nowhere."""
    for found in pattern.finditer(line):
        start, end = found.span()
        if not _NONE_AFTER.match(line, end) and not _NONE_BEFORE.search(line[max(0, start - BEFORE_CHARS) : start]):
            return start
    return -1


def _line_starts(folded: str) -> Iterator[int]:
    """Where the lines begin that hold one of the words, in order."""
    starts = set()
    for word in WORDS:
        at = folded.find(word)
        while at >= 0:
            starts.add(folded.rfind("\n", 0, at) + 1)
            end = folded.find("\n", at)
            at = folded.find(word, end) if end >= 0 else -1
    return iter(sorted(starts))
