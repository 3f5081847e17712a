"""Backups of an embedded store: a tar stream of the database at one moment, copied while writers continue.

database.db                        the SQLite file
manifest.json                      last: the time of the backup, and size and SHA-256 of every other member
contents/<folder>/<hash>.zst       only up to version 0.2: the texts of details, which were files then
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import apsw

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid, StoreError
from wellkept.model import BackupReport, Json
from wellkept.program import FORMER_NAME, PROGRAM
from wellkept.store import IN_MEMORY, is_postgres, sqlite_path
from wellkept.store.engine import Progress
from wellkept.store.notes.disk import OWNER_ONLY_FILE, Disk, make_private
from wellkept.store.sqlite.writer import translate_errors
from wellkept.store.tables.details import CHUNK_CHARS, FOLDER_SUFFIX

WAL_SUFFIX = "-wal"
DATABASE, CONTENTS, MANIFEST = "database.db", "contents", "manifest.json"
VERSION = 1
PAGES = 256
"""Pages copied at a time: about a megabyte."""

MAX_MANIFEST_BYTES = 512 * 1024 * 1024
PIECE = 1024 * 1024

BROKEN = (tarfile.TarError, ValueError, OverflowError)
"""Errors of a damaged archive: its headers may have numbers that no file has."""

NOT_A_BACKUP = "The file is not a backup of wellkept. `wellkept data import` reads exports and files of other programs."
DAMAGED = "The backup is damaged or cut off: {}. Use another copy; nothing was restored."
OCCUPIED = "{path} already holds a store. Restore to another --url, or move it away first."
OCCUPIED_FOLDER = "{folder} holds the texts of another store. Restore to another --url, or move it away first."
LOST = "{} texts of details are missing from the store, and so from this backup; `wellkept doctor` names them."

NOT_A_MANIFEST = DAMAGED.format("its manifest is not one that wellkept writes")
BEHIND = "The file goes on after the end of the backup. Use another copy, or cut off what is behind it."

COUNT_TEXTS = """
SELECT count(*), coalesce(sum(found * ? >= chars), 0) FROM (
  SELECT d.chars, (
    SELECT count(*) FROM detail_chunks c WHERE c.tenant_id = d.tenant_id AND c.content_hash = d.content_hash
  ) AS found
  FROM (SELECT DISTINCT tenant_id, content_hash, chars FROM details) d)"""

_CONTENT = re.compile(rf"{CONTENTS}/([^/]{{1,200}}-[0-9a-f]{{16}})/([0-9a-f]{{64}}\.zst)")


def write_backup(
    file: IO[bytes],
    copy_database: Callable[[Path], None],
    *,
    scratch: Path,
    now: datetime,
    progress: Progress | None = None,
) -> BackupReport:
    """Write a backup to `file`; `copy_database` writes the database of one moment to a path inside `scratch`.

    Raises: StoreError.
    """
    with tempfile.TemporaryDirectory(prefix=".wellkept-backup-", dir=scratch) as folder:
        database = Path(folder) / DATABASE
        copy_database(database)
        texts, missing = _count_texts(database)
        with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            check_deadline()
            members: dict[str, Json] = {DATABASE: _add_file(archive, DATABASE, database, now)}
            if progress is not None:
                progress(1, 1)
            manifest = {PROGRAM: "backup", "version": VERSION, "created_at": now.isoformat(), "members": members}
            encoded = json.dumps(manifest, separators=(",", ":")).encode()
            archive.addfile(_describe(MANIFEST, len(encoded), now), io.BytesIO(encoded))
    return _report(now, members, texts, problems=[LOST.format(missing)] if missing else ())


def is_backup(file: IO[bytes]) -> bool:
    """Return True if a stream begins like a backup."""
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            first = archive.next()
    except BROKEN:
        return False
    return first is not None and first.name == DATABASE


def verify_backup(file: IO[bytes], *, scratch: Path, progress: Callable[[], None] | None = None) -> BackupReport:
    """Read a whole backup and check every checksum and the database inside; write nothing but temporary files.

    Raises: Invalid, which names the damage.
    """
    with tempfile.TemporaryDirectory(prefix=".wellkept-verify-", dir=scratch) as folder:
        return _unpack(file, Path(folder), is_kept=lambda name: name == DATABASE, progress=progress)


def restore_backup(file: IO[bytes], url: str, *, progress: Callable[[], None] | None = None) -> BackupReport:
    """Unpack a backup beside the file that `url` names, check it, and then move it into place.

    Raises: Invalid when the backup is damaged or when there already is a store; StoreError.
    """
    if is_postgres(url) or sqlite_path(url) == IN_MEMORY:
        raise Invalid("A backup is restored to a SQLite file: name it as sqlite:///file.db.")
    path = Path(os.path.realpath(sqlite_path(url)))
    if any(each.exists() and each.stat().st_size for each in (path, Path(f"{path}{WAL_SUFFIX}"))):
        raise Invalid(OCCUPIED.format(path=path))
    make_private(path.parent)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-restoring-", dir=path.parent) as name:
        folder = Path(name)
        report = _unpack(file, folder, is_kept=lambda name: True, progress=progress)
        try:
            _move_into_place(folder, path)
        except OSError as error:
            # A store was created here meanwhile.
            raise Invalid(OCCUPIED.format(path=path)) from error
        Disk().sync_folder(path.parent)
    return report


def _move_into_place(folder: Path, path: Path) -> None:
    """Move an unpacked store to its place, the database last.

    Raises: Invalid when there are texts of another store; OSError if there is another database.
    """
    texts, place = folder / CONTENTS, Path(f"{path}{FOLDER_SUFFIX}")
    has_texts = texts.exists()
    if has_texts:
        try:
            os.rename(texts, place)
        except OSError as error:
            raise Invalid(OCCUPIED_FOLDER.format(folder=place)) from error
    try:
        if path.exists() and not path.stat().st_size:
            path.unlink()
        # Unlike a renamed file, a link never replaces another one.
        os.link(folder / DATABASE, path)
    except OSError:
        if has_texts:
            os.rename(place, texts)
        raise


def _count_texts(database: Path) -> tuple[int, int]:
    """Count the texts of details that are whole in a copied database, and those that are not."""
    with _open_copy(database) as connection:
        try:
            rows: Any = connection.execute(COUNT_TEXTS, (CHUNK_CHARS,)).fetchall()
        except apsw.SQLError as error:
            raise Invalid(NOT_A_BACKUP) from error
    ((known, whole),) = rows
    return whole, known - whole


@contextmanager
def _open_copy(database: Path) -> Iterator[apsw.Connection]:
    with translate_errors():
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            yield connection
        finally:
            connection.close()


def _describe(name: str, size: int, now: datetime) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, OWNER_ONLY_FILE, int(now.timestamp())
    return member


def _add_file(archive: tarfile.TarFile, name: str, path: Path, now: datetime) -> Json:
    with path.open("rb") as source:
        size = os.fstat(source.fileno()).st_size
        hashing = _HashingReader(source)
        archive.addfile(_describe(name, size, now), hashing)
    return {"bytes": size, "sha256": hashing.sha256.hexdigest()}


class _EndReader(io.RawIOBase):
    """File that knows where the last byte is that is not zero."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0
        self.end = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        if filled := len(piece.rstrip(b"\0")):
            self.end = self._position + filled
        self._position += len(piece)
        return piece


class _HashingReader(io.RawIOBase):
    """File that hashes what is read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self.sha256.update(piece)
        return piece


def _unpack(
    file: IO[bytes], folder: Path, *, is_kept: Callable[[str], bool], progress: Callable[[], None] | None
) -> BackupReport:
    """Unpack the members of a backup that are kept, and check all of them against the manifest.

    Raises: Invalid.
    """
    found: dict[str, Json] = {}
    manifest: _Manifest | None = None
    problem, reader, end = NOT_A_BACKUP, _EndReader(file), 0
    try:
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            for member in archive:
                check_deadline()
                stream = archive.extractfile(member) if member.isreg() else None
                if manifest is not None or stream is None or member.name in found:
                    raise Invalid(NOT_A_BACKUP)
                if member.name == MANIFEST:
                    manifest = _parse_manifest(stream.read(MAX_MANIFEST_BYTES))
                    end = member.offset_data + member.size
                    continue
                if member.name != DATABASE and not _CONTENT.fullmatch(member.name):
                    raise Invalid(NOT_A_BACKUP)
                problem = DAMAGED.format("it ends too early")
                target = folder / member.name if is_kept(member.name) else None
                found[member.name] = _copy_member(stream, target)
                if progress is not None:
                    progress()
    except BROKEN as error:
        raise Invalid(problem) from error
    if manifest is None or DATABASE not in found:
        raise Invalid(problem)
    while reader.read(PIECE):
        check_deadline()
    if reader.end > end:
        raise Invalid(BEHIND)
    listed = manifest.members
    if listed != found:
        wrong = sorted(name for name in {*found, *listed} if found.get(name) != listed.get(name))
        raise Invalid(DAMAGED.format(f"{len(wrong)} parts differ from their checksums, such as {wrong[0]}"))
    _check_database(folder / DATABASE)
    # A backup of version 0.2 has texts beside the database.
    return _report(manifest.created_at, found, _count_texts(folder / DATABASE)[0] + len(found) - 1)


def _copy_member(stream: IO[bytes], target: Path | None) -> Json:
    size, sha256 = 0, hashlib.sha256()
    output: IO[bytes] | None = None
    try:
        if target is not None:
            make_private(target.parent)
            output = os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY_FILE), "wb")
        while piece := stream.read(PIECE):
            size += len(piece)
            sha256.update(piece)
            if output is not None:
                output.write(piece)
        if output is not None:
            output.flush()
            os.fsync(output.fileno())
    except OSError as error:
        raise StoreError(f"The backup cannot be unpacked here: {error.strerror}.") from error
    finally:
        if output is not None:
            output.close()
    return {"bytes": size, "sha256": sha256.hexdigest()}


class _Manifest(NamedTuple):
    """Manifest of a backup, as far as it is used."""

    created_at: datetime
    members: dict[str, Json]  # size and checksum of each, by name


def _parse_manifest(encoded: bytes) -> _Manifest:
    """Read a manifest. Raises: Invalid when it is not exactly what `write_backup` writes."""
    try:
        manifest = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise Invalid(DAMAGED.format("its manifest is not JSON")) from error
    if not isinstance(manifest, dict) or "backup" not in (manifest.get(PROGRAM), manifest.get(FORMER_NAME)):
        raise Invalid(NOT_A_BACKUP)
    version, created_at, members = (manifest.get(name) for name in ("version", "created_at", "members"))
    if type(version) is int and version > VERSION:
        raise Invalid("The backup was written by a later version of wellkept; update this one.")
    if type(version) is not int or not isinstance(created_at, str) or not isinstance(members, dict):
        raise Invalid(NOT_A_MANIFEST)
    try:
        moment = datetime.fromisoformat(created_at)
    except ValueError as error:
        raise Invalid(NOT_A_MANIFEST) from error
    if version != VERSION or moment.tzinfo is None:
        raise Invalid(NOT_A_MANIFEST)
    return _Manifest(moment, members)


def _check_database(database: Path) -> None:
    """Raises: Invalid when SQLite finds damage."""
    with _open_copy(database) as connection:
        try:
            (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone() or ("no answer",)
        except apsw.Error as error:
            raise Invalid(DAMAGED.format(f"its database is unreadable ({error})")) from error
    if answer != "ok":
        raise Invalid(DAMAGED.format(f"its database is inconsistent ({answer})"))


def _report(created_at: datetime, members: dict[str, Json], texts: int, problems: Sequence[str] = ()) -> BackupReport:
    return BackupReport(
        created_at=created_at,
        texts=texts,
        bytes=sum(each["bytes"] for each in members.values()),
        problems=tuple(problems),
    )
