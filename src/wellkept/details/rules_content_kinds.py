"""Detection of the kind of a text from its first lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from enum import StrEnum

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
