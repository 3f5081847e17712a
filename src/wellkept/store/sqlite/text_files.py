"""Texts of details in files beside the database, as version 0.2 kept them, and their move into rows.

A file holds the same compressed chunks as the rows, so they are copied as they are, in transactions of bounded size. A
text counts as moved once its row has the index of line breaks; until then it is read from the chunks that are in rows
already and from the file. A move that was interrupted goes on behind the last chunk that was committed. A moved file
stays for an hour, for transactions that began before; an erasure removes it at once.

    file:   chunk, chunk, …, index, footer; a chunk is a Zstandard frame, the rest a skippable frame
    index:  offset of each chunk (and the end of the last one), then the line breaks before each chunk
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from wellkept.deadline import check_deadline
from wellkept.errors import StoreError
from wellkept.store.content.chunks import DAMAGED, MISSING, pack_numbers, unpack_numbers
from wellkept.store.engine import Engine, Unit

FOLDER_SUFFIX = ".blobs"
SUFFIX = ".zst"
TEMPORARY = ".tmp"
MARKER = "store-id"
"""File in the folder that named the database it belonged to."""

STEP_BYTES = 4 * 1024 * 1024
"""Compressed bytes moved by one transaction, which blocks all writers."""

KEPT_AFTER_MOVE = timedelta(hours=1)

_MAGIC = b"rcl-txt1"
_SKIPPED = struct.Struct("<II")  # header of a skippable frame: magic number and length
_FOOTER = struct.Struct("<QQQQI8s")  # index offset, chunks, bytes, characters, checksum, _MAGIC


def tenant_folder(tenant: str) -> str:
    """Return the name of a tenant's folder. The hash keeps names distinct on case-insensitive file systems."""
    return f"{tenant.lower()}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


class TextFile:
    """A text in a file."""

    def __init__(self, folder: Path, tenant: str, content_hash: str) -> None:
        """Read the index of the file. Raises: StoreError when the file is missing or its index damaged."""
        self.path = folder / tenant_folder(tenant) / f"{content_hash}{SUFFIX}"
        with self._open() as fd:
            end = os.fstat(fd).st_size - _FOOTER.size
            if end < 0:
                raise StoreError(DAMAGED)
            begin, count, self.size, self.chars, checksum, magic = _FOOTER.unpack(os.pread(fd, _FOOTER.size, end))
            length = 8 * (2 * count + 1)
            if magic != _MAGIC or begin + _SKIPPED.size + length != end:
                raise StoreError(DAMAGED)
            packed = os.pread(fd, length, end - length)
        if zlib.crc32(packed + _FOOTER.pack(begin, count, self.size, self.chars, 0, _MAGIC)) != checksum:
            raise StoreError(DAMAGED)
        numbers = unpack_numbers(packed)
        self._starts, self.newlines = numbers[: count + 1], numbers[count + 1 :]

    def frame(self, position: int) -> bytes:
        """Return a compressed chunk. Raises: StoreError."""
        begin, end = self._starts[position : position + 2]
        with self._open() as fd:
            return os.pread(fd, end - begin, begin)

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                yield fd
            finally:
                os.close(fd)
        except FileNotFoundError as error:
            raise StoreError(MISSING) from error
        except OSError as error:
            raise StoreError(DAMAGED) from error


def move_texts(engine: Engine, folder: Path, tenant: str, *, stored_before: datetime, unknown_too: bool) -> int:
    """Move the texts of a tenant into rows, and remove files that are needed no longer; return how many are removed.

    Files that this database never knew may belong to a newer one that is about to be restored, and stay unless
    `unknown_too`. So do those whose index is damaged.
    """
    own = folder / tenant_folder(tenant)
    if not own.is_dir():
        return 0
    for content_hash in _list_unmoved(engine, tenant):
        with contextlib.suppress(StoreError):
            file = TextFile(folder, tenant, content_hash)
            while _move_step(engine, tenant, content_hash, file):
                check_deadline()
            if not unknown_too:
                moved_at = (stored_before + KEPT_AFTER_MOVE).timestamp()
                os.utime(file.path, (moved_at, moved_at))
    return _remove_files(engine, own, tenant, None if unknown_too else stored_before.timestamp())


def remove_file(folder: Path, tenant: str, content_hash: str) -> None:
    """Remove the file of a text that no detail has, if there is one."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(folder / tenant_folder(tenant) / f"{content_hash}{SUFFIX}")


def _list_unmoved(engine: Engine, tenant: str) -> Sequence[str]:
    return [row[0] for row in engine.read(tenant, lambda unit: unit.all("list_contents_in_files", tenant=tenant))]


def _move_step(engine: Engine, tenant: str, content_hash: str, file: TextFile) -> bool:
    """Copy the next chunks into rows; return False after the last."""
    key_params = {"tenant": tenant, "content_hash": content_hash}

    def move(unit: Unit) -> bool:
        # Another process may have moved or deleted the text.
        found = unit.one("find_content", **key_params)
        if found is None or len(found[2]) or (found[0], found[1]) != (file.size, file.chars):
            return False
        ((position, _),) = unit.all("measure_frames", **key_params)
        moved = 0
        while position < len(file.newlines) and moved < STEP_BYTES:
            frame = file.frame(position)
            unit.put("add_chunk_frame", **key_params, position=position, frame=frame)
            position, moved = position + 1, moved + len(frame)
        if position < len(file.newlines):
            return True
        unit.put("set_line_index", **key_params, line_index=pack_numbers(file.newlines))
        return False

    return engine.write(tenant, move)


def _remove_files(engine: Engine, own: Path, tenant: str, oldest: float | None) -> int:
    """Remove files of moved texts and of dead writers older than `oldest`; all but those still to be moved if None."""
    known = {row[0] for row in engine.read(tenant, lambda unit: unit.all("list_contents", tenant=tenant))}
    unmoved, removed = set(_list_unmoved(engine, tenant)), 0
    for path in [*own.glob(f"*{SUFFIX}"), *own.glob(f"*{TEMPORARY}")]:
        content_hash = path.name.removesuffix(SUFFIX)
        is_known = path.suffix == TEMPORARY or content_hash in known
        with contextlib.suppress(OSError):
            if content_hash not in unmoved and (oldest is None or (is_known and path.stat().st_mtime < oldest)):
                path.unlink()
                removed += content_hash not in known
    with contextlib.suppress(OSError):
        own.rmdir()
        if [each.name for each in own.parent.iterdir()] == [MARKER]:
            (own.parent / MARKER).unlink()
        own.parent.rmdir()
    return removed
