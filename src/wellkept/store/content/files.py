"""Contents of details as files beside the database, named by their hash, with a folder for each tenant.

A file and its directory entry are synced before the row that refers to it is committed. The file is written under a
temporary name and then linked to its final name. The transaction checks that it still exists and restores it if a sweep
has removed it meanwhile: sweeps remove files only inside a transaction too, and SQLite allows one writer at a time. A
writer that dies leaves either an unlocked temporary file or a file without a row.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import sys
import uuid
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

from wellkept.errors import DiskFull, ReadOnly, StoreError
from wellkept.model import Detail
from wellkept.store.content.chunks import (
    CHUNK_CHARS,
    DAMAGED,
    MISSING,
    ChunkFile,
    ChunkIndex,
    chunk_length,
    decompress_chunk,
    read_index,
)
from wellkept.store.engine import Engine, Unit
from wellkept.store.notes.disk import OWNER_ONLY_FILE, Disk
from wellkept.store.sqlite.files import write_marker

if sys.platform != "win32":
    import fcntl

SUFFIX = ".zst"
TEMPORARY = ".tmp"
COMPARE_BYTES = 1024 * 1024
"""Bytes compared at a time."""

SWEEP_BATCH = 20
"""Files removed in one transaction, which blocks all writers."""

_NAME = re.compile(r"([0-9a-f]{64})\.zst")
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _translate_os_errors(action: str) -> Iterator[None]:
    """Convert every OSError inside into an error of the store. Raises: StoreError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull("The disk is full; nothing was stored. Free some space and try again.") from error
        kind = ReadOnly if error.errno == errno.EROFS else StoreError
        raise kind(f"The text of a detail cannot be {action}: {error.strerror or error}.") from error


class FileDraft:
    """Draft of a content: a temporary file, locked while its writer lives."""

    def __init__(self, folder: Path, disk: Disk, *, store_id: int) -> None:
        self._folder = folder
        self._disk = disk
        self._temporary = folder / f"{uuid.uuid4().hex}{TEMPORARY}"
        self._is_synced = False
        self._identical_file = (0, 0)  # inode and size of the file last found to be identical
        with _translate_os_errors("stored"):
            _make_folder(folder, disk, store_id)
            fd = os.open(self._temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY_FILE)
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._file = os.fdopen(fd, "w+b")
        self.chunks = ChunkFile(self._file)
        self.is_sealed = False

    @property
    def path(self) -> Path:
        return self._folder / f"{self.chunks.content_hash}{SUFFIX}"

    def feed(self, text: str) -> None:
        with _translate_os_errors("stored"):
            self.chunks.feed(text)

    def seal(self) -> None:
        if self.is_sealed:
            return
        with _translate_os_errors("stored"):
            self.chunks.finish()
            if not self._is_stored():
                self._sync()
                self._link()
            # Sync even if another writer linked the file: it may not have synced yet.
            self._disk.sync_folder(self._folder)
        self.is_sealed = True

    def settle(self, now: datetime) -> None:
        """Ensure that the file exists. Called in the transaction, so that no sweep removes it before the commit."""
        with _translate_os_errors("stored"):
            if not self._is_stored():
                self._sync()
                os.replace(self._temporary, self.path)
                self._disk.sync_folder(self._folder)
            # Sweeps skip recent files.
            os.utime(self.path, (now.timestamp(), now.timestamp()))

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)
        # Closing may fail to flush, which no longer matters: the file is unlinked.
        with contextlib.suppress(OSError):
            self._file.close()

    def _is_stored(self) -> bool:
        """Return True if an identical file exists. A damaged one is not identical and gets replaced."""
        try:
            with open(self.path, "rb") as known:
                status = os.fstat(known.fileno())
                found = (status.st_ino, status.st_size)
                if found != self._identical_file and not self._is_same_as(known):
                    return False
        except (FileNotFoundError, IsADirectoryError):
            return False
        self._identical_file = found
        return True

    def _is_same_as(self, known: IO[bytes]) -> bool:
        self._file.seek(0)
        while (ours := self._file.read(COMPARE_BYTES)) == known.read(COMPARE_BYTES):
            if not ours:
                return True
        return False

    def _sync(self) -> None:
        if not self._is_synced:
            self._disk.sync(self._file.fileno())
            self._is_synced = True

    def _link(self) -> None:
        try:
            os.link(self._temporary, self.path)
        except FileExistsError:
            # It is identical, or damaged and `settle` replaces it.
            return
        except OSError as error:
            # Without hard links, `settle` renames the file inside the transaction.
            if error.errno not in _NO_LINKS:
                raise


class FileContent:
    """Stored content."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, path: Path, index: ChunkIndex, lines: int) -> None:
        self._path = path
        self._starts = index.starts
        self.chars = index.chars
        self.lines = lines
        self.newlines = index.newlines

    def chunk(self, position: int) -> str:
        begin, end = self._starts[position : position + 2]
        try:
            with open(self._path, "rb") as file:
                frame = os.pread(file.fileno(), end - begin, begin)
        except FileNotFoundError as error:
            raise StoreError(MISSING) from error
        except OSError as error:
            raise StoreError(DAMAGED) from error
        return decompress_chunk(frame, chars=chunk_length(position, self.chars))


class ContentFiles:
    """Contents of all tenants; each text is stored once per tenant, and tenants share no files."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Store contents in `folder`; the table `detail_contents` lists those that this database knows."""
        self._engine = engine
        self._folder = folder
        self._disk = Disk()

    def begin(self, tenant: str) -> FileDraft:
        return FileDraft(self._folder_of(tenant), self._disk, store_id=self._engine.store_id)

    def keep(self, unit: Unit, draft: FileDraft, *, now: datetime) -> None:
        """Store the draft's content in the transaction that adds the detail."""
        draft.settle(now)
        key_params = {"tenant": unit.tenant, "content_hash": draft.chunks.content_hash}
        if not unit.run(
            "add_content", **key_params, size=draft.chunks.size, chars=draft.chunks.chars, line_index=b"", now=now
        ):
            unit.put("hold_content", **key_params, now=now)

    def open(self, detail: Detail) -> FileContent:
        path = self._folder_of(detail.owner.tenant) / f"{detail.content_hash}{SUFFIX}"
        index = _read_index_at(path)
        if (index.size, index.chars) != (detail.size, detail.chars):
            raise StoreError(DAMAGED)
        return FileContent(path, index, detail.lines)

    def pieces(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """Return the chunks of the whole text, within the caller's transaction."""
        content = self.open(detail)
        return map(content.chunk, range(len(content.newlines)))

    def sweep(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove contents that no detail refers to.

        Files unknown to this database may belong to a newer backup that is about to be restored; they are removed only
        with `unknown_too`.
        """
        folder, oldest = self._folder_of(tenant), stored_before.timestamp()
        old = self._list_older(tenant, oldest)
        with _translate_os_errors("swept"):
            swept = sum(_sweep_temporary(folder / name) for name in old if name.endswith(TEMPORARY))
        values = {"tenant": tenant, "stored_before": stored_before, "limit": -1}
        hashes = {known for (known,) in self._engine.read(tenant, lambda unit: unit.all("list_orphans", **values))}
        hashes |= _hashes(old) if unknown_too else set()
        candidates = sorted(hashes)
        for start in range(0, len(candidates), SWEEP_BATCH):
            swept += self._remove(tenant, candidates[start : start + SWEEP_BATCH], oldest)
        return swept

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        values = {"tenant": tenant, "stored_before": stored_before}
        ((count,),) = self._engine.read(tenant, lambda unit: unit.all("count_orphans", **values))
        return int(count) + sum(
            name.endswith(TEMPORARY) for name in self._list_older(tenant, stored_before.timestamp())
        )

    def count_unknown(self, tenant: str, *, stored_before: datetime) -> int:
        hashes = _hashes(self._list_older(tenant, stored_before.timestamp()))
        known = self._engine.read(tenant, lambda unit: unit.all("list_contents", tenant=tenant))
        return len(hashes.difference(each for (each,) in known))

    def drop(self, tenant: str, content_hash: str) -> bool:
        return self._remove(tenant, [content_hash], None) > 0

    def _list_older(self, tenant: str, moment: float) -> list[str]:
        """List the names of a tenant's files last modified before `moment`."""
        folder = self._folder_of(tenant)
        with _translate_os_errors("listed"):
            if not folder.is_dir():
                return []
            with os.scandir(folder) as entries:
                return [entry.name for entry in entries if _is_older(Path(entry.path), moment)]

    def _remove(self, tenant: str, hashes: Collection[str], oldest: float | None) -> int:
        """Remove the contents that no detail refers to; return the number of files removed."""
        folder, values = self._folder_of(tenant), {"tenant": tenant, "hashes": json.dumps(list(hashes))}

        def list_known(unit: Unit) -> set[str]:
            return {content_hash for (content_hash,) in unit.all("list_known_contents", **values)}

        def remove(unit: Unit) -> int:
            # This transaction may roll back its own deletions, so also keep what a reader sees as committed.
            needed = list_known(unit) | self._engine.read(tenant, list_known)
            paths = [folder / f"{each}{SUFFIX}" for each in hashes if each not in needed]
            with _translate_os_errors("removed"):
                removed = [path for path in paths if oldest is None or _is_older(path, oldest) or not path.exists()]
                count = sum(_unlink(path) for path in removed)
                if count:
                    self._disk.sync_folder(folder)
            for path in removed:
                unit.put("delete_content", tenant=tenant, content_hash=path.name.removesuffix(SUFFIX))
            return count

        if known_now := self._engine.read(tenant, list_known):
            hashes = [each for each in hashes if each not in known_now]
        return self._engine.write(tenant, remove) if hashes else 0

    def _folder_of(self, tenant: str) -> Path:
        return self._folder / tenant_folder(tenant)


def tenant_folder(tenant: str) -> str:
    """Return the name of a tenant's folder. The hash keeps names distinct on case-insensitive file systems."""
    return f"{tenant.lower()}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


def _make_folder(folder: Path, disk: Disk, store_id: int) -> None:
    for each in (folder.parent, folder):
        if not each.is_dir():
            with contextlib.suppress(FileExistsError):
                disk.make_folder(each)
            disk.sync_folder(each.parent)
    write_marker(folder.parent, store_id)


def _read_index_at(path: Path) -> ChunkIndex:
    """Read the index of a content file. Raises: StoreError."""
    try:
        with open(path, "rb") as file:
            return read_index(file.fileno())
    except FileNotFoundError as error:
        raise StoreError(MISSING) from error
    except OSError as error:
        raise StoreError(DAMAGED) from error


def _hashes(names: Iterable[str]) -> set[str]:
    return {match[1] for name in names if (match := _NAME.fullmatch(name))}


def _is_older(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return False


def _sweep_temporary(path: Path) -> bool:
    """Remove a temporary file unless it is locked: the lock is released when its writer dies."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _unlink(path)
    except (FileNotFoundError, BlockingIOError):
        return False


def _unlink(path: Path) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
