"""Contents as files beside the database, named by their hash, a folder for each tenant.

A file is whole and on disk, and so is its name, before the row that refers to it is committed. It is written under a
temporary name and then linked to its own. Inside the transaction it is looked for once more, and put back if somebody
has swept it away meanwhile: a sweep, too, removes files only inside a transaction, and SQLite lets one at a time write.
What a dead writer leaves is a temporary file nobody has locked, or a file no row refers to.
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

from recollect.errors import DiskFull, ReadOnly, StoreError
from recollect.model import Detail
from recollect.store.content.chunks import (
    CHUNK_CHARS,
    DAMAGED,
    MISSING,
    ChunkFile,
    Index,
    chunk_length,
    expanded,
    read_index,
)
from recollect.store.engine import Engine, Unit
from recollect.store.notes.disk import OWNER_ONLY_FILE, Disk
from recollect.store.sqlite.files import write_marker

if sys.platform != "win32":
    import fcntl

SUFFIX = ".zst"
TEMPORARY = ".tmp"
COMPARED = 1024 * 1024
SWEEP_BATCH = 20
"""Files removed in one transaction, while everybody who wants to write waits."""

_NAME = re.compile(r"([0-9a-f]{64})\.zst")
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _told(doing: str) -> Iterator[None]:
    """Raises: StoreError for every OSError inside."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull("The disk is full; nothing was stored. Free some space and try again.") from error
        kind = ReadOnly if error.errno == errno.EROFS else StoreError
        raise kind(f"The text of a detail cannot be {doing}: {error.strerror or error}.") from error


class FileDraft:
    """`ports.ContentDraft`: a temporary file, locked for as long as its writer lives."""

    def __init__(self, folder: Path, disk: Disk, *, store_id: int) -> None:
        self._folder = folder
        self._disk = disk
        self._temporary = folder / f"{uuid.uuid4().hex}{TEMPORARY}"
        self._is_synced = False
        self._seen = (0, 0)  # the file that was found to be the same, by its number and length
        with _told("stored"):
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
        with _told("stored"):
            self.chunks.feed(text)

    def seal(self) -> None:
        if self.is_sealed:
            return
        with _told("stored"):
            self.chunks.finish()
            if not self._is_there():
                self._sync()
                self._link()
            # Also when somebody else has linked it: they may not have come to this yet.
            self._disk.sync_folder(self._folder)
        self.is_sealed = True

    def settle(self, now: datetime) -> None:
        """See that the file is there. Inside the transaction, so that nobody sweeps until it is committed."""
        with _told("stored"):
            if not self._is_there():
                self._sync()
                os.replace(self._temporary, self.path)
                self._disk.sync_folder(self._folder)
            os.utime(self.path, (now.timestamp(), now.timestamp()))  # a sweep leaves what is young alone

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)
        with contextlib.suppress(OSError):  # what it could not write belongs to a file that is gone
            self._file.close()

    def _is_there(self) -> bool:
        """Whether the same text is there already, byte for byte: ours takes the place of a damaged one."""
        try:
            with open(self.path, "rb") as known:
                status = os.fstat(known.fileno())
                found = (status.st_ino, status.st_size)
                if found != self._seen and not self._is_same_as(known):
                    return False
        except (FileNotFoundError, IsADirectoryError):
            return False
        self._seen = found
        return True

    def _is_same_as(self, known: IO[bytes]) -> bool:
        self._file.seek(0)
        while (ours := self._file.read(COMPARED)) == known.read(COMPARED):
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
            return  # it is the same, or it is damaged and `settle` replaces it
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise  # else `settle` renames it, inside the transaction


class FileContent:
    """`ports.Content`."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, path: Path, index: Index, lines: int) -> None:
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
        return expanded(frame, chars=chunk_length(position, self.chars))


class ContentFiles:
    """Every tenant's contents, each once. Tenants share no file."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Keep contents in `folder`, and in `detail_contents` which of them this database knows."""
        self._engine = engine
        self._folder = folder
        self._disk = Disk()

    def begin(self, tenant: str) -> FileDraft:
        return FileDraft(self._of(tenant), self._disk, store_id=self._engine.store_id)

    def keep(self, unit: Unit, draft: FileDraft, *, now: datetime) -> None:
        """Inside the transaction that adds the detail."""
        draft.settle(now)
        where = {"tenant": unit.tenant, "content_hash": draft.chunks.content_hash}
        if not unit.run(
            "add_content", **where, size=draft.chunks.size, chars=draft.chunks.chars, line_index=b"", now=now
        ):
            unit.run("hold_content", **where, now=now)

    def open(self, detail: Detail) -> FileContent:
        path = self._of(detail.owner.tenant) / f"{detail.content_hash}{SUFFIX}"
        index = _read_index_at(path)
        if (index.size, index.chars) != (detail.size, detail.chars):
            raise StoreError(DAMAGED)
        return FileContent(path, index, detail.lines)

    def pieces(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """The whole text, chunk by chunk, for who reads many of them in one transaction."""
        content = self.open(detail)
        return map(content.chunk, range(len(content.newlines)))

    def sweep(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove what no detail refers to. A file this database never knew may belong to a newer copy of it that
        somebody is about to restore, so it goes only with `unknown_too`."""
        folder, oldest = self._of(tenant), stored_before.timestamp()
        old = self._older(tenant, oldest)
        with _told("swept"):
            swept = sum(_swept_temporary(folder / name) for name in old if name.endswith(TEMPORARY))
        values = {"tenant": tenant, "stored_before": stored_before, "limit": -1}
        hashes = {known for (known,) in self._engine.read(tenant, lambda unit: unit.all("list_orphans", **values))}
        hashes |= _hashes(old) if unknown_too else set()
        waiting = sorted(hashes)
        for start in range(0, len(waiting), SWEEP_BATCH):
            swept += self._remove(tenant, waiting[start : start + SWEEP_BATCH], oldest)
        return swept

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        values = {"tenant": tenant, "stored_before": stored_before}
        ((count,),) = self._engine.read(tenant, lambda unit: unit.all("count_orphans", **values))
        return int(count) + sum(name.endswith(TEMPORARY) for name in self._older(tenant, stored_before.timestamp()))

    def count_unknown(self, tenant: str, *, stored_before: datetime) -> int:
        hashes = _hashes(self._older(tenant, stored_before.timestamp()))
        known = self._engine.read(tenant, lambda unit: unit.all("list_contents", tenant=tenant))
        return len(hashes.difference(each for (each,) in known))

    def drop(self, tenant: str, content_hash: str) -> bool:
        return self._remove(tenant, [content_hash], None) > 0

    def _older(self, tenant: str, moment: float) -> list[str]:
        """The names of a tenant's files that are older than this."""
        folder = self._of(tenant)
        with _told("listed"):
            if not folder.is_dir():
                return []
            with os.scandir(folder) as entries:
                return [entry.name for entry in entries if _is_older(Path(entry.path), moment)]

    def _remove(self, tenant: str, hashes: Collection[str], oldest: float | None) -> int:
        """Remove those no detail refers to; how many there were."""
        folder, values = self._of(tenant), {"tenant": tenant, "hashes": json.dumps(list(hashes))}

        def known(unit: Unit) -> set[str]:
            return {content_hash for (content_hash,) in unit.all("list_known_contents", **values)}

        def remove(unit: Unit) -> int:
            # What this transaction sees deleted may yet come back, if it fails; what a reader sees is committed.
            needed = known(unit) | self._engine.read(tenant, known)
            paths = [folder / f"{each}{SUFFIX}" for each in hashes if each not in needed]
            with _told("removed"):
                removed = [path for path in paths if oldest is None or _is_older(path, oldest) or not path.exists()]
                count = sum(_unlinked(path) for path in removed)
                if count:
                    self._disk.sync_folder(folder)
            for path in removed:
                unit.run("delete_content", tenant=tenant, content_hash=path.name.removesuffix(SUFFIX))
            return count

        if known_now := self._engine.read(tenant, known):
            hashes = [each for each in hashes if each not in known_now]
        return self._engine.write(tenant, remove) if hashes else 0

    def _of(self, tenant: str) -> Path:
        """Told apart also where file names ignore case."""
        return self._folder / f"{tenant.lower()}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


def _make_folder(folder: Path, disk: Disk, store_id: int) -> None:
    for each in (folder.parent, folder):
        if not each.is_dir():
            with contextlib.suppress(FileExistsError):
                disk.make_folder(each)
            disk.sync_folder(each.parent)
    write_marker(folder.parent, store_id)


def _read_index_at(path: Path) -> Index:
    """Raises: StoreError."""
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


def _swept_temporary(path: Path) -> bool:
    """Remove a temporary file unless its writer lives: the lock goes with the process."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _unlinked(path)
    except (FileNotFoundError, BlockingIOError):
        return False


def _unlinked(path: Path) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
