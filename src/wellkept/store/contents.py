"""Contents of details as rows, committed together with the detail.

Chunked storage of long texts: chunks with an equal number of characters, each compressed separately.

Reading a part of the text decompresses only the one or two chunks that contain it. The chunk of a character follows
from its offset, the chunk of a line from a small index of the line breaks before each chunk. Each chunk carries its own
checksum. A text may arrive in pieces; its chunks are written to a file that the caller provides and owns.

Texts of details in files beside the database, as version 0.2 kept them, and their move into rows.

A file holds the same compressed chunks as the rows, so they are copied as they are, in transactions of bounded size. A
text counts as moved once its row has the index of line breaks; until then it is read from the chunks that are in rows
already and from the file. A move that was interrupted goes on behind the last chunk that was committed. A moved file
stays for an hour, for transactions that began before; an erasure removes it at once.

    file:   chunk, chunk, …, index, footer; a chunk is a Zstandard frame, the rest a skippable frame
    index:  offset of each chunk (and the end of the last one), then the line breaks before each chunk
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

from wellkept.compression import zstd, zstd_options
from wellkept.deadline import check_deadline
from wellkept.errors import DiskFull, StoreError
from wellkept.language.text import replace_half_pairs
from wellkept.model import Detail
from wellkept.store.engine import Engine, Unit

CHUNK_CHARS = 128 * 1024
MAX_CHUNK_BYTES = 4 * CHUNK_CHARS
"""Maximum size of a chunk: a character takes at most four bytes in UTF-8."""

MISSING = "The text behind this key is missing from the store. Other details are whole; store this one again."
DAMAGED = "The text behind this key is damaged in the store. Other details are whole; store this one again."


def pack_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def unpack_numbers(packed: bytes) -> Sequence[int]:
    """Decode what `pack_numbers` returned. Raises: StoreError."""
    if len(packed) % 8:
        raise StoreError(DAMAGED)
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def decompress_chunk(frame: bytes, *, chars: int) -> str:
    """Decompress a chunk and check that it has `chars` characters. Raises: StoreError when it is damaged."""
    decompressor = zstd.ZstdDecompressor()
    try:
        # One byte more, so that the end of the frame is read after the largest chunk, too.
        text = decompressor.decompress(frame, max_length=MAX_CHUNK_BYTES + 1).decode()
    except (zstd.ZstdError, UnicodeDecodeError) as error:
        raise StoreError(DAMAGED) from error
    if len(text) != chars or not decompressor.eof:
        raise StoreError(DAMAGED)
    return str(text)


def chunk_length(position: int, chars: int) -> int:
    """Return the length of a chunk in a text of `chars` characters.

    >>> chunk_length(0, 10), chunk_length(1, CHUNK_CHARS + 10), chunk_length(2, CHUNK_CHARS + 10)
    (10, 10, 0)
    """
    return max(0, min(CHUNK_CHARS, chars - position * CHUNK_CHARS))


class ChunkFile:
    """Writer of a text to a file, chunk by chunk."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._compressor = zstd.ZstdCompressor(options=zstd_options())
        self._hash = hashlib.sha256()
        self._buffer: list[str] = []
        self._buffered_chars = 0
        self.starts = [0]  # offset of each chunk, and the end of the last one
        self.newlines: list[int] = []  # line breaks before each chunk
        self._last = ""
        self.size = self.chars = self._breaks = 0

    @property
    def content_hash(self) -> str:
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """Number of lines; the last one counts even without a line break."""
        return self._breaks + (self.chars > 0 and self._last != "\n")

    def feed(self, text: str) -> None:
        for start in range(0, len(text), CHUNK_CHARS):
            self._buffer.append(replace_half_pairs(text[start : start + CHUNK_CHARS]))
            self._buffered_chars += len(self._buffer[-1])
            if self._buffered_chars >= CHUNK_CHARS:
                joined = "".join(self._buffer)
                self._add(joined[:CHUNK_CHARS])
                self._buffer, self._buffered_chars = [joined[CHUNK_CHARS:]], len(joined) - CHUNK_CHARS

    def finish(self) -> None:
        """Write the buffered rest."""
        if self._buffered_chars:
            self._add("".join(self._buffer))
        self._buffer, self._buffered_chars = [], 0

    def frames(self) -> Iterator[bytes]:
        """Yield every compressed chunk."""
        for begin, end in zip(self.starts, self.starts[1:], strict=False):
            self.file.seek(begin)
            yield self.file.read(end - begin)

    def _add(self, text: str) -> None:
        encoded = text.encode()
        frame = self._compressor.compress(encoded, zstd.ZstdCompressor.FLUSH_FRAME)
        self.file.write(frame)
        self._hash.update(encoded)
        self.starts.append(self.starts[-1] + len(frame))
        self.newlines.append(self._breaks)
        self._breaks += text.count("\n")
        self.size += len(encoded)
        self.chars += len(text)
        self._last = text[-1]


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


IN_MEMORY_BYTES = 1024 * 1024
"""Compressed size up to which a draft stays in memory; larger ones go to an unnamed temporary file."""

NO_TENANT = ""
SWEEP_BATCH = 50
"""Orphans listed by one statement."""


class ContentDraft:
    """A text being written in pieces, compressed into a temporary file until its hash is known."""

    def __init__(self) -> None:
        # Closed by `close`.
        self.chunks = ChunkFile(tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115
        self.is_sealed = False

    def feed(self, text: str) -> None:
        """Append to the text. Raises: StoreError."""
        with _translate_disk_errors():
            self.chunks.feed(text)

    def seal(self) -> None:
        """End the text. Call it outside of any transaction. Raises: StoreError."""
        if not self.is_sealed:
            with _translate_disk_errors():
                self.chunks.finish()
            self.is_sealed = True

    def close(self) -> None:
        """Release a draft that was not added. Further calls do nothing."""
        self.chunks.file.close()


@contextmanager
def _translate_disk_errors() -> Iterator[None]:
    """Convert an error of the temporary file to one of the store. Raises: StoreError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull("The disk is full; nothing was stored. Free some space and try again.") from error
        raise StoreError(f"The text cannot be kept in a temporary file: {error.strerror or error}.") from error


class Content:
    """A stored text in chunks of equal length in characters, each readable on its own."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, engine: Engine, detail: Detail, newlines: Sequence[int], file: TextFile | None) -> None:
        """Open the text; chunks that are not in rows are read from `file`, if there is one."""
        self._engine = engine
        self._key = {"tenant": detail.owner.tenant, "content_hash": detail.content_hash}
        self._file = file
        self.chars = detail.chars
        self.lines = detail.lines
        self.newlines = newlines

    def chunk(self, position: int) -> str:
        """Return one chunk of the text; 0 is the first. Raises: StoreError when it is missing or damaged."""
        return self._engine.read(self._key["tenant"], partial(self.read_chunk, position))

    def read_chunk(self, position: int, unit: Unit) -> str:
        row = unit.one("find_frame", **self._key, position=position)
        if row is None and self._file is None:
            raise StoreError(MISSING)
        frame = bytes(row[0]) if row is not None else self._file.frame(position)  # type: ignore[union-attr]
        return decompress_chunk(frame, chars=chunk_length(position, self.chars))


class ContentRows:
    """Contents of all tenants; each text is stored once per tenant."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, tenant: str) -> ContentDraft:
        return ContentDraft()

    def keep(self, unit: Unit, draft: ContentDraft, *, now: datetime) -> None:
        """Store the draft's content in the transaction that adds the detail."""
        chunks = draft.chunks
        key_params = {"tenant": unit.tenant, "content_hash": chunks.content_hash}
        index = pack_numbers(chunks.newlines)
        if unit.run("add_content", **key_params, size=chunks.size, chars=chunks.chars, line_index=index, now=now):
            for position, frame in enumerate(chunks.frames()):
                unit.put("add_chunk_frame", **key_params, position=position, frame=frame)
        elif not unit.run("hold_content", **key_params, now=now):
            # A sweep removed the content between the two statements.
            self.keep(unit, draft, now=now)
        elif tuple(unit.one("measure_frames", **key_params) or ()) != (
            len(chunks.newlines),
            chunks.starts[-1],
        ):
            # Some frames are lost; replace the stored content with ours.
            unit.put("delete_content", **key_params)
            self.keep(unit, draft, now=now)

    def open(self, detail: Detail) -> Content:
        read = partial(self._engine.read, detail.owner.tenant, partial(self._open, detail))
        try:
            return read()
        except StoreError:
            # Its file may have been moved and removed after this snapshot.
            return read()

    def _open(self, detail: Detail, unit: Unit) -> Content:
        tenant, file = detail.owner.tenant, None
        row = unit.one("find_content", tenant=tenant, content_hash=detail.content_hash)
        if row is None:
            raise StoreError(MISSING)
        size, chars, line_index = row
        newlines = unpack_numbers(bytes(line_index))
        if chars and not newlines and self._engine.content_folder is not None:
            file = TextFile(self._engine.content_folder, tenant, detail.content_hash)
            size, chars, newlines = file.size, file.chars, file.newlines
        if (size, chars) != (detail.size, detail.chars) or len(newlines) != -(-chars // CHUNK_CHARS):
            raise StoreError(DAMAGED)
        return Content(self._engine, detail, newlines, file)

    def pieces(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """Yield the whole text chunk by chunk, within the caller's transaction."""
        content = self._open(detail, unit)
        return (content.read_chunk(position, unit) for position in range(len(content.newlines)))

    def sweep(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        swept, values = 0, {"tenant": tenant, "stored_before": stored_before, "limit": SWEEP_BATCH}
        while orphans := self._engine.read(tenant, lambda unit: unit.all("list_orphans", **values)):
            dropped = sum(self.drop(tenant, content_hash) for (content_hash,) in orphans)
            swept += dropped
            # Some are in use again; leave the rest to the next sweep.
            if dropped < len(orphans):
                break
        folder = self._engine.content_folder
        if folder is None:
            return swept
        return swept + move_texts(self._engine, folder, tenant, stored_before=stored_before, unknown_too=unknown_too)

    def move(self, *, now: datetime) -> None:
        """Move the texts of all tenants that are still in files into rows."""
        folder = self._engine.content_folder
        if folder is not None:
            for (tenant,) in self._engine.read(NO_TENANT, lambda unit: unit.all("list_tenants_with_files")):
                move_texts(self._engine, folder, tenant, stored_before=now - KEPT_AFTER_MOVE, unknown_too=False)

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        values = {"tenant": tenant, "stored_before": stored_before}
        ((count,),) = self._engine.read(tenant, lambda unit: unit.all("count_orphans", **values))
        return int(count)

    def drop(self, tenant: str, content_hash: str) -> bool:
        key_params = {"tenant": tenant, "content_hash": content_hash}

        def drop(unit: Unit) -> bool:
            if unit.one("lock_content", **key_params) is None or unit.one("count_content_rows", **key_params) != (0,):
                return False
            return unit.run("delete_content", **key_params) > 0

        is_dropped = self._engine.write(tenant, drop)
        if is_dropped and self._engine.content_folder is not None:
            remove_file(self._engine.content_folder, tenant, content_hash)
        return is_dropped
