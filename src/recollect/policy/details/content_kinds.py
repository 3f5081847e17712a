"""What kind of content a text is, told from how it begins."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from enum import StrEnum

MAX_NAME_CHARS = 40
SAMPLE_LINES = 60


class ContentKind(StrEnum):
    """What a text is, as a person would call it."""

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
"""What colours a terminal."""

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


def kind_of(lines: Sequence[str]) -> ContentKind:
    """The kind of a text that begins with these lines; a whole JSON document is for `JsonShape` to tell.

    >>> kind_of(["2026-01-31T12:00:00Z INFO started", "2026-01-31T12:00:01Z ERROR no disk"]).value
    'log'
    """
    said = [line for line in lines if line.strip()][:SAMPLE_LINES]
    if not said:
        return ContentKind.TEXT
    if _is_diff(said):
        return ContentKind.DIFF
    if _is_json_lines(said):
        return ContentKind.JSON_LINES
    if _is_trace(said):
        return ContentKind.STACK_TRACE
    if _MARKUP.match(said[0].lstrip()):
        is_html = any(_HTML.search(line) for line in said[:5])
        return ContentKind.HTML if is_html else ContentKind.XML
    if _share(said, lambda line: bool(STAMP.match(line) or LEVEL.search(line[:120]))) >= 0.3:
        return ContentKind.LOG
    if columns(said):
        return ContentKind.TABLE
    if sum(_CODE.match(line) is not None for line in said) >= max(2, len(said) // 20):
        return ContentKind.CODE
    return ContentKind.TEXT


def columns(lines: Sequence[str]) -> list[str]:
    """The names of a table's columns, if these lines are one: separated values, Markdown, or aligned under capitals.

    >>> columns(["id,name", '1,"Ann, the first"', "2,Bob"])
    ['id', 'name']
    >>> columns(["NAME   READY   STATUS", "web-1  1/1     Running"])
    ['NAME', 'READY', 'STATUS']
    """
    said = [line for line in lines if line.strip()][:SAMPLE_LINES]
    if len(said) < 2:
        return []
    aligned = _ALIGNED.split(said[0].strip())
    if len(aligned) >= 3 and all(name == name.upper() and name[0].isalpha() for name in aligned):
        return _names(aligned)
    if len(said) < 3:
        return []
    for delimiter in _DELIMITERS:
        if delimiter not in said[0]:
            continue
        try:
            rows = list(csv.reader(said, delimiter=delimiter))
        except csv.Error:
            continue
        names = [name.strip() for name in rows[0]]
        if delimiter == "|" and said[0].strip().startswith("|"):
            names = names[1:-1]
        is_header = all(name and len(name) <= MAX_NAME_CHARS for name in names) and len(set(names)) == len(names)
        if len(names) >= 2 and is_header and all(len(row) == len(rows[0]) for row in rows):
            return _names(names)
    return []


def _names(names: Sequence[str]) -> list[str]:
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


def _share(lines: Sequence[str], is_it: Callable[[str], bool]) -> float:
    return sum(is_it(line) for line in lines) / len(lines)
