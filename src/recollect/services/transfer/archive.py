"""The file an export is: lines of JSON, the first of which says what it is and the last of which that it is whole.

{"recollect": "export", "version": 1, "tenant": "acme", "exported_at": "2026-01-31T12:00:00.000000Z"}
{"table": "agents", "row": {"id": "atlas", …}}
…
{"end": {"counts": {"agents": 1, …}, "sha256": "…"}}
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NoReturn

from recollect.deadline import check_deadline
from recollect.errors import Invalid
from recollect.model import Json
from recollect.policy.json_values import MAX_DEPTH, check_depth, has_too_many_values
from recollect.ports import ArchiveFiles

VERSION = 1
MARK = b'{"recollect":"export"'
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_LINE_PARTS = 1_000_000
"""More than any line that is written here has: a turn has 100,000 characters, a piece of a text 131,072."""

MAX_LINE_DEPTH = MAX_DEPTH + 4
"""A value as deep as any that is accepted stands inside a column of a row of a line."""

CUT_OFF = "The file is cut off: its last line, which says that it is whole, is missing. Copy it again."
DAMAGED = "The file was damaged or changed on its way: its checksum does not fit. Copy it again."


@dataclass(frozen=True, slots=True)
class Header:
    """What an export says about itself."""

    tenant: str
    exported_at: str


@dataclass(frozen=True, slots=True)
class Line:
    """One row of an export."""

    number: int  # of the line, counted from 1
    table: str
    row: Json
    read: int  # bytes of the file read by then


class ArchiveWriter:
    """Writes an export, line by line."""

    def __init__(self, file: IO[bytes], tenant: str, now: datetime) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        at = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self._write({"recollect": "export", "version": VERSION, "tenant": tenant, "exported_at": at})

    def add(self, table: str, row: Json) -> None:
        self.counts[table] += 1
        self._write({"table": table, "row": row})

    def finish(self) -> str:
        """Write the last line; the checksum it holds."""
        checksum = self._hash.hexdigest()
        self._write({"end": {"counts": dict(self.counts), "sha256": checksum}})
        return checksum

    def _write(self, line: Json) -> None:
        encoded = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        self._hash.update(encoded)
        self._file.write(encoded)


class ArchiveReader:
    """An export that is being read. `header` is known from the beginning, `sha256` at the end."""

    def __init__(self, files: ArchiveFiles, path: Path) -> None:
        """Raises: Invalid when the file is no export, or one of a later version."""
        self._lines = files.lines(path, max_bytes=MAX_LINE_BYTES)
        self._hash = hashlib.sha256()
        self.sha256 = ""
        first, _ = next(self._lines, (b"", 0))
        told = _read(first, 1)
        version = told.get("version")
        if told.get("recollect") != "export" or not isinstance(version, int):
            raise Invalid(f"{path.name}: not an export of recollect; its first line does not say so.")
        if version > VERSION:
            raise Invalid(f"{path.name}: written by a later version of recollect (format {version}); update this one.")
        self._hash.update(first)
        self.header = Header(str(told.get("tenant", "")), str(told.get("exported_at", "")))

    def __iter__(self) -> Iterator[Line]:
        """Raises: Invalid when a line makes no sense, or the file is not whole: then nothing that was read counts."""
        counts: Counter[str] = Counter()
        for number, (encoded, read) in enumerate(self._lines, 2):
            check_deadline()
            told = _read(encoded, number)
            if "end" in told:
                self._check_end(told["end"], counts)
                return
            table, row = told.get("table"), told.get("row")
            if not isinstance(table, str) or not isinstance(row, dict):
                raise Invalid(f"Line {number} is no row of an export.")
            counts[table] += 1
            self._hash.update(encoded)
            yield Line(number, table, row, read)
        raise Invalid(CUT_OFF)

    def _check_end(self, end: Any, counts: Counter[str]) -> None:
        checksum = self._hash.hexdigest()
        if not isinstance(end, dict) or end.get("sha256") != checksum or end.get("counts") != dict(counts):
            raise Invalid(DAMAGED)
        if next(self._lines, None) is not None:
            raise Invalid("There is something behind the last line of the export; take it away.")
        self.sha256 = checksum


def is_export(files: ArchiveFiles, path: Path) -> bool:
    """Whether a file says that it is an export of recollect.

    Raises: Invalid when it cannot be read.
    """
    for line, _ in files.lines(path, max_bytes=MAX_LINE_BYTES):
        return line.startswith(MARK)
    if files.size(path):
        raise Invalid(f"{path.name}: is cut off before the end of its first line. Copy it again.")
    return False


def _read(encoded: bytes, number: int) -> Json:
    if has_too_many_values(encoded, MAX_LINE_PARTS):
        raise Invalid(f"Line {number} is no row of an export: it holds too many values.")
    try:
        told = json.loads(encoded, parse_constant=_no_number)
    except (ValueError, RecursionError):  # also what is not UTF-8
        raise Invalid(CUT_OFF if not encoded.endswith(b"\n") else f"Line {number} is not JSON.") from None
    if not isinstance(told, dict):
        raise Invalid(f"Line {number} is no row of an export.")
    check_depth(told, what=f"line {number} of the export", most=MAX_LINE_DEPTH)
    return told


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
