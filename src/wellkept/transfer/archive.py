"""Export file format: JSON lines, with a header as the first line and a checksum as the last.

{"wellkept": "export", "version": 1, "tenant": "acme", "exported_at": "2026-01-31T12:00:00.000000Z"}
{"table": "agents", "row": {"id": "atlas", …}}
…
{"end": {"counts": {"agents": 1, …}, "sha256": "…", "signature": "…"}}

The signature, present if the exporting store has an `export_key`, is an HMAC of the same bytes as the checksum.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid
from wellkept.extension import Clock, Progress
from wellkept.history.rules_history import encode_key, is_foreign, key_mark
from wellkept.history.workflows import record_event
from wellkept.language.values import MAX_DEPTH, check_depth, has_too_many_values
from wellkept.model import AuditEvent, ExportReport, Json
from wellkept.program import FORMER_NAME, PROGRAM
from wellkept.providers import archives
from wellkept.transfer.rules import upgrade_row

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


VERSION = 1
MARKS = tuple(b'{"%s":"export"' % name.encode() for name in (PROGRAM, FORMER_NAME))
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_LINE_PARTS = 1_000_000
"""More than any exported line has: a turn has at most 100,000 characters, a piece of a text 131,072."""

MAX_LINE_DEPTH = MAX_DEPTH + 4
"""Depth of the deepest accepted value, plus the levels of line, row and column around it."""

CUT_OFF = "The file is cut off: its last line is missing. Copy it again."
DAMAGED = "The file was damaged or changed: its checksum does not match. Copy it again."
FORGED = "The file was changed after it was signed: its signature does not match. Export it again."
OTHER_KEY = (
    "The file is signed with another export_key than is set here. Set export_key to the one it was signed with, or "
    "import it as trusted if you know where it comes from."
)


@dataclass(frozen=True, slots=True)
class Header:
    """Header of an export."""

    tenant: str
    exported_at: str


@dataclass(frozen=True, slots=True)
class Line:
    """Row of an export."""

    number: int  # line number, from 1
    table: str
    row: Json
    read: int  # bytes of the file read so far


class ContentSeal:
    """Checksum of a file's lines, and with a key their signature, computed while they pass."""

    def __init__(self, key: str) -> None:
        self._hash = hashlib.sha256()
        self._mark = key_mark(key) if key else ""
        self._keyed = hmac.new(encode_key(key), digestmod=hashlib.sha256) if key else None

    def update(self, line: bytes) -> None:
        self._hash.update(line)
        if self._keyed is not None:
            self._keyed.update(line)

    @property
    def sha256(self) -> str:
        """Checksum of the lines so far."""
        return self._hash.hexdigest()

    @property
    def signature(self) -> str:
        """Signature of the lines so far; empty without a key."""
        return "" if self._keyed is None else self._mark + self._keyed.hexdigest()


class ArchiveWriter:
    """Writer of an export, line by line. With a key, the export is signed."""

    def __init__(self, file: IO[bytes], tenant: str, now: datetime, *, key: str = "") -> None:
        self._file = file
        self._seal = ContentSeal(key)
        self.counts: Counter[str] = Counter()
        at = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self._write({PROGRAM: "export", "version": VERSION, "tenant": tenant, "exported_at": at})

    def add(self, table: str, row: Json) -> None:
        """Write a row."""
        self.counts[table] += 1
        self._write({"table": table, "row": row})

    def finish(self) -> str:
        """Write the last line and return its checksum."""
        end = {"counts": dict(self.counts), "sha256": self._seal.sha256, "signature": self._seal.signature}
        self._write({"end": {name: value for name, value in end.items() if value != ""}})
        return str(end["sha256"])

    def _write(self, line: Json) -> None:
        encoded = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        self._seal.update(encoded)
        self._file.write(encoded)


class ArchiveReader:
    """Reader of an export. `header` is set at the start; `sha256`, `signature` and `is_signed` at the end."""

    def __init__(self, path: Path, *, key: str = "") -> None:
        """Open the file and read its header.

        Raises: Invalid when the file is not an export, or one of a later version.
        """
        self._lines = archives.read_lines(path, max_bytes=MAX_LINE_BYTES)
        self._key = key
        self._seal = ContentSeal(key)
        self.sha256 = self.signature = ""
        # True if the signature was made with the key.
        self.is_signed = False
        first, _ = next(self._lines, (b"", 0))
        header = _parse_line(first, 1)
        version = header.get("version")
        if "export" not in (header.get(PROGRAM), header.get(FORMER_NAME)) or not isinstance(version, int):
            raise Invalid(f"{path.name}: not an export of wellkept; its first line is not a header.")
        if version > VERSION:
            raise Invalid(f"{path.name}: written by a later version of wellkept (format {version}); update this one.")
        self._seal.update(first)
        self.header = Header(str(header.get("tenant", "")), str(header.get("exported_at", "")))

    def __iter__(self) -> Iterator[Line]:
        """Yield the rows. After an error, discard the rows that were read.

        Raises: Invalid when a line is invalid or the file is incomplete.
        """
        counts: Counter[str] = Counter()
        for number, (encoded, read) in enumerate(self._lines, 2):
            check_deadline()
            line = _parse_line(encoded, number)
            if "end" in line:
                self._check_end(line["end"], counts)
                return
            table, row = line.get("table"), line.get("row")
            if not isinstance(table, str) or not isinstance(row, dict):
                raise Invalid(f"Line {number} is not a row of an export.")
            counts[table] += 1
            self._seal.update(encoded)
            yield Line(number, *upgrade_row(table, row), read)
        raise Invalid(CUT_OFF)

    def _check_end(self, end: Any, counts: Counter[str]) -> None:
        checksum = self._seal.sha256
        if not isinstance(end, dict) or end.get("sha256") != checksum or end.get("counts") != dict(counts):
            raise Invalid(DAMAGED)
        if next(self._lines, None) is not None:
            raise Invalid("The file continues after the last line of the export; remove the extra data.")
        self.sha256, self.signature = checksum, str(end.get("signature", ""))
        if self._key and self.signature and not is_foreign(self.signature, self._key):
            if not hmac.compare_digest(self.signature.encode(), self._seal.signature.encode()):
                raise Invalid(FORGED)
            self.is_signed = True


def is_export(path: Path) -> bool:
    """Return True if a file starts like an export of wellkept. Raises: Invalid when it cannot be read."""
    for line, _ in archives.read_lines(path, max_bytes=MAX_LINE_BYTES):
        return line.startswith(MARKS)
    if archives.get_size(path):
        raise Invalid(f"{path.name}: is cut off before the end of its first line. Copy it again.")
    return False


def _parse_line(encoded: bytes, number: int) -> Json:
    """Parse a line. Raises: Invalid."""
    if has_too_many_values(encoded, MAX_LINE_PARTS):
        raise Invalid(f"Line {number} is not a row of an export: it contains too many values.")
    try:
        line = json.loads(encoded, parse_constant=_reject_constant)
    # ValueError includes invalid UTF-8.
    except (ValueError, RecursionError):
        raise Invalid(CUT_OFF if not encoded.endswith(b"\n") else f"Line {number} is not JSON.") from None
    if not isinstance(line, dict):
        raise Invalid(f"Line {number} is not a row of an export.")
    check_depth(line, what=f"line {number} of the export", most=MAX_LINE_DEPTH)
    return line


def _reject_constant(name: str) -> NoReturn:
    """Reject NaN and Infinity, which are not JSON."""
    raise ValueError(name)


class Export:
    """Service that writes exports."""

    def __init__(self, store: SqlStore, now: Clock, *, key: str = "") -> None:
        self._key = key
        self._store = store
        self._now = now

    def __call__(
        self, tenant: str, to: Path | IO[bytes], progress: Progress | None = None, *, user: str | None = None
    ) -> ExportReport:
        """Write a consistent snapshot of a tenant, without its API keys, or of one user's records.

        Raises: Invalid when the file cannot be written.
        """
        if not isinstance(to, Path) and not hasattr(to, "write"):
            raise Invalid("Name a file to export to, or give one that is open for writing.")
        if isinstance(to, Path):
            with archives.create_archive(to) as file:
                exported = self._write(tenant, file, progress, user)
        else:
            exported = self._write(tenant, to, progress, user)
        count = sum(exported.counts.values())
        record_event(
            self._store,
            AuditEvent(
                tenant=tenant,
                at=self._now(),
                action="export.write",
                message=f"The tenant{'' if user is None else ', one user of it,'} was exported: {count:,} rows.",
                meta={"sha256": exported.sha256, "counts": dict(exported.counts)},
            ),
        )
        return exported

    def _write(self, tenant: str, file: IO[bytes], progress: Progress | None, user: str | None) -> ExportReport:
        archive, problems = ArchiveWriter(file, tenant, self._now(), key=self._key), list[str]()

        def take(table: str, row: Json) -> None:
            check_deadline()
            if "problem" in row:
                problems.append(f"{row['content_hash']}: {row['problem']}")
            archive.add(table, row)
            if progress is not None:
                progress(archive.counts.total(), 0)

        self._store.export_rows(tenant, take, user=user)
        checksum = archive.finish()
        return ExportReport(
            tenant=tenant,
            counts=dict(archive.counts),
            sha256=checksum,
            is_signed=bool(self._key),
            problems=tuple(problems),
        )
