"""Rows of details and of their texts.

A text is stored once per tenant, in chunks with an equal number of characters, each compressed separately. Reading a
part of it decompresses only the one or two chunks that contain the part. The chunk of a character follows from its
offset, the chunk of a line from a small index of the line breaks before each chunk. Each chunk carries its own
checksum. A text may arrive in pieces; its chunks wait in a temporary file until its hash is known.

Version 0.2 kept the texts of SQLite in files beside the database, with the same compressed chunks. They are copied as
they are when the store is opened, in transactions of bounded size. A text counts as moved once its row has the index of
line breaks; a move that was interrupted goes on behind the last chunk that was committed.

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
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import IO

from wellkept.compression import zstd, zstd_options
from wellkept.errors import DiskFull, NotFound, StoreError
from wellkept.language.text import fold, replace_half_pairs
from wellkept.model import BackupReport, Detail, Owner
from wellkept.model.stored import Place
from wellkept.store.engine import Engine, Progress, Unit, Units, owner_params
from wellkept.store.tables.agents import ensure_agent
from wellkept.store.tables.rows import NO_OWNER, detail_from, detail_values

NO_SUCH_DETAIL = "There is no such detail."
AFTER_ALL = datetime(9999, 1, 1, tzinfo=UTC)
"""Start of a listing without a cursor."""

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


class ContentDraft:
    """A text being written in pieces, compressed into a temporary file until its hash is known."""

    def __init__(self) -> None:
        # Closed by `close`.
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115
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
        """Append to the text. Raises: StoreError."""
        for start in range(0, len(text), CHUNK_CHARS):
            self._buffer.append(replace_half_pairs(text[start : start + CHUNK_CHARS]))
            self._buffered_chars += len(self._buffer[-1])
            if self._buffered_chars >= CHUNK_CHARS:
                joined = "".join(self._buffer)
                self._add(joined[:CHUNK_CHARS])
                self._buffer, self._buffered_chars = [joined[CHUNK_CHARS:]], len(joined) - CHUNK_CHARS

    def seal(self) -> None:
        """End the text. Call it outside of any transaction. Raises: StoreError."""
        if self._buffered_chars:
            self._add("".join(self._buffer))
        self._buffer, self._buffered_chars = [], 0

    def frames(self) -> Iterator[bytes]:
        """Yield every compressed chunk."""
        for begin, end in zip(self.starts, self.starts[1:], strict=False):
            self._file.seek(begin)
            yield self._file.read(end - begin)

    def close(self) -> None:
        """Release a draft that was not added. Further calls do nothing."""
        self._file.close()

    def _add(self, text: str) -> None:
        encoded = text.encode()
        frame = self._compressor.compress(encoded, zstd.ZstdCompressor.FLUSH_FRAME)
        try:
            self._file.write(frame)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise DiskFull("The disk is full; nothing was stored. Free some space and try again.") from error
            raise StoreError(f"The text cannot be kept in a temporary file: {error.strerror or error}.") from error
        self._hash.update(encoded)
        self.starts.append(self.starts[-1] + len(frame))
        self.newlines.append(self._breaks)
        self._breaks += text.count("\n")
        self.size += len(encoded)
        self.chars += len(text)
        self._last = text[-1]


FOLDER_SUFFIX = ".blobs"
SUFFIX = ".zst"
MARKER = "store-id"
"""File in the folder that named the database it belonged to."""

STEP_BYTES = 4 * 1024 * 1024
"""Compressed bytes moved by one transaction, which blocks all writers."""

IN_MEMORY_BYTES = 1024 * 1024
"""Compressed size up to which a draft stays in memory; larger ones go to an unnamed temporary file."""

SWEEP_BATCH = 50
"""Orphans listed by one statement."""

_MAGIC = b"rcl-txt1"
_SKIPPED = struct.Struct("<II")  # header of a skippable frame: magic number and length
_FOOTER = struct.Struct("<QQQQI8s")  # index offset, chunks, bytes, characters, checksum, _MAGIC


def tenant_folder(tenant: str) -> str:
    """Return the name of a tenant's folder. The hash keeps names distinct on case-insensitive file systems."""
    return f"{tenant.lower()}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


class DamagedTextFile(StoreError):
    """The file of a text is missing or damaged."""


class TextFile:
    """A text in a file."""

    def __init__(self, folder: Path, tenant: str, content_hash: str) -> None:
        """Read the index of the file. Raises: DamagedTextFile."""
        self.path = folder / tenant_folder(tenant) / f"{content_hash}{SUFFIX}"
        with self._open() as fd:
            end = os.fstat(fd).st_size - _FOOTER.size
            if end < 0:
                raise DamagedTextFile(DAMAGED)
            begin, count, self.size, self.chars, checksum, magic = _FOOTER.unpack(os.pread(fd, _FOOTER.size, end))
            length = 8 * (2 * count + 1)
            if magic != _MAGIC or begin + _SKIPPED.size + length != end:
                raise DamagedTextFile(DAMAGED)
            packed = os.pread(fd, length, end - length)
        if zlib.crc32(packed + _FOOTER.pack(begin, count, self.size, self.chars, 0, _MAGIC)) != checksum:
            raise DamagedTextFile(DAMAGED)
        numbers = unpack_numbers(packed)
        self._starts, self.newlines = numbers[: count + 1], numbers[count + 1 :]

    def frame(self, position: int) -> bytes:
        """Return a compressed chunk. Raises: DamagedTextFile."""
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
        except OSError as error:
            raise DamagedTextFile(DAMAGED) from error


def move_texts(engine: Engine) -> None:
    """Move the texts of all tenants from files into rows. What is damaged stays where it is, and so do files that this
    database never knew: they may belong to a newer one that is about to be restored."""
    folder = engine.content_folder
    if folder is None or not folder.is_dir():
        return
    for (tenant,) in engine.read(NO_OWNER, lambda unit: unit.all("list_tenants")):
        own = folder / tenant_folder(tenant)
        if not own.is_dir():
            continue
        unmoved = _list_contents(engine, tenant, "list_contents_in_files")
        for content_hash in sorted(unmoved):
            try:
                file = TextFile(folder, tenant, content_hash)
                while _move_step(engine, tenant, content_hash, file):
                    pass
                unmoved.remove(content_hash)
            except DamagedTextFile:
                continue
        moved = _list_contents(engine, tenant, "list_contents") - unmoved
        _remove_files(own, [each for each in own.glob(f"*{SUFFIX}") if each.stem in moved])


def _list_contents(engine: Engine, tenant: str, statement: str) -> set[str]:
    return {row[0] for row in engine.read(tenant, lambda unit: unit.all(statement, tenant=tenant))}


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


def _remove_files(own: Path, files: Sequence[Path]) -> None:
    """Remove files of a tenant, and the folders that are empty then."""
    with contextlib.suppress(OSError):
        for path in files:
            path.unlink(missing_ok=True)
        own.rmdir()
        if [each.name for each in own.parent.iterdir()] == [MARKER]:
            (own.parent / MARKER).unlink()
        own.parent.rmdir()


class Content:
    """A stored text in chunks of equal length in characters, each readable on its own."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, engine: Engine, detail: Detail, newlines: Sequence[int]) -> None:
        self._engine = engine
        self._key = {"tenant": detail.owner.tenant, "content_hash": detail.content_hash}
        self.chars = detail.chars
        self.lines = detail.lines
        self.newlines = newlines

    def chunk(self, position: int) -> str:
        """Return one chunk of the text; 0 is the first. Raises: StoreError when it is missing or damaged."""
        return self._engine.read(self._key["tenant"], lambda unit: self.read_chunk(position, unit))

    def read_chunk(self, position: int, unit: Unit) -> str:
        row = unit.one("find_frame", **self._key, position=position)
        if row is None:
            raise StoreError(MISSING)
        return decompress_chunk(bytes(row[0]), chars=chunk_length(position, self.chars))


class DetailRows(Units):
    """Details of an agent."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        move_texts(engine)

    def add_detail(self, detail: Detail, draft: ContentDraft) -> Detail:
        """Store the detail with the sealed draft as its content; equal contents are stored once per tenant.

        Raises: Conflict when the agent has a detail with that key.
        """
        owner, now = detail.owner, detail.created_at
        draft.seal()
        stored = replace(detail, content_hash=draft.content_hash, size=draft.size, chars=draft.chars, lines=draft.lines)

        def add(unit: Unit) -> Detail:
            ensure_agent(unit, owner, now)
            keep_content(unit, draft, now=now)
            unit.put("add_detail", **detail_values(stored), folded=search_text(stored))
            return stored

        return self.write(owner.tenant, add)

    def get_detail(self, owner: Owner, key: str) -> Detail:
        """Return one detail. Raises: NotFound."""
        return detail_from(self._get(owner, "find_detail", NO_SUCH_DETAIL, key=key))

    def list_details(
        self,
        owner: Owner,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """List details, newest first, starting after `before` (its time and key); `is_active` None lists all."""
        at, key = before or (AFTER_ALL, "")
        place = {"session": session_id, "is_active": is_active, "before_at": at, "before_key": key}
        by_time = attrgetter("created_at", "key")
        return self._list(owner, "list_details", detail_from, by_time, limit=limit, **place)

    def search_details(
        self, owner: Owner, words: Sequence[str], *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Search active details for words in key, type, description, summary or source, ignoring case.

        Details with most of the words come first, then the newest; the first `offset` are skipped.
        """
        values = {"words": [*map(fold, words)], "session": session_id, "offset": offset, "limit": limit}
        return [*map(detail_from, self._all(owner, "search_details", **values))]

    def set_detail_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Show or hide a detail. Raises: NotFound."""

        def change(unit: Unit) -> Detail:
            if not unit.run("set_detail_active", **owner_params(owner), key=key, is_active=is_active):
                raise NotFound(NO_SUCH_DETAIL)
            return _get_detail(unit, owner, key)

        return self.write(owner.tenant, change)

    def delete_detail(self, owner: Owner, key: str) -> Detail:
        """Delete a detail and return it. Its content stays until `sweep_contents`. Raises: NotFound."""

        def delete(unit: Unit) -> Detail:
            detail = _get_detail(unit, owner, key)
            if not unit.run("delete_detail", **owner_params(owner), key=key):
                raise NotFound(NO_SUCH_DETAIL)
            return detail

        return self.write(owner.tenant, delete)

    def open_content(self, owner: Owner, key: str) -> Content:
        """Open the text of a detail. Raises: NotFound; StoreError when the content is missing or damaged."""
        detail = self.get_detail(owner, key)
        return self._engine.read(owner.tenant, lambda unit: self._open_content(unit, detail))

    def _open_content(self, unit: Unit, detail: Detail) -> Content:
        row = unit.one("find_content", tenant=detail.owner.tenant, content_hash=detail.content_hash)
        if row is None:
            raise StoreError(MISSING)
        newlines = unpack_numbers(bytes(row[2]))
        if (row[0], row[1]) != (detail.size, detail.chars) or len(newlines) != -(-detail.chars // CHUNK_CHARS):
            raise StoreError(DAMAGED)
        return Content(self._engine, detail, newlines)

    def _iter_content(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """Yield the whole text of a detail chunk by chunk, within the caller's transaction. Raises: StoreError."""
        content = self._open_content(unit, detail)
        return (content.read_chunk(position, unit) for position in range(len(content.newlines)))

    def sweep_contents(self, tenant: str, *, stored_before: datetime) -> int:
        """Remove contents without a detail and return how many. Move what a server of version 0.2 stored meanwhile.

        Contents stored after `stored_before` stay, because their detail may not be committed yet.
        """
        move_texts(self._engine)
        swept = 0
        while orphans := self._all(tenant, "list_orphans", stored_before=stored_before, limit=SWEEP_BATCH):
            dropped = sum(self.drop_content(tenant, content_hash) for (content_hash,) in orphans)
            swept += dropped
            # Some are in use again; leave the rest to the next sweep.
            if dropped < len(orphans):
                break
        return swept

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        """Count the contents `sweep_contents` would remove."""
        return int(self._all(tenant, "count_orphans", stored_before=stored_before)[0][0])

    def drop_content(self, tenant: str, content_hash: str) -> bool:
        """Remove one content at once unless a detail uses it; return True if it was removed."""
        key = {"tenant": tenant, "content_hash": content_hash}

        def drop(unit: Unit) -> bool:
            if unit.one("lock_content", **key) is None or unit.one("count_content_rows", **key) != (0,):
                return False
            return unit.run("delete_content", **key) > 0

        return self.write(tenant, drop)

    def remove_files(self, tenant: str) -> None:
        """Remove what is left of a tenant's texts in files: those that are damaged or were never known."""
        if self._engine.content_folder is not None:
            own = self._engine.content_folder / tenant_folder(tenant)
            _remove_files(own, [*own.glob(f"*{SUFFIX}"), *own.glob("*.tmp")])

    def back_up(
        self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None = None
    ) -> BackupReport:
        """Write a backup of one moment to `file`, with temporary files in `scratch`.

        Raises: Invalid when the engine has its own backups; StoreError.
        """
        return self._engine.back_up(file, scratch=scratch, now=now, progress=progress)


def keep_content(unit: Unit, draft: ContentDraft, *, now: datetime) -> None:
    """Store the draft's content in the transaction that adds the detail."""
    key = {"tenant": unit.tenant, "content_hash": draft.content_hash}
    index = pack_numbers(draft.newlines)
    if unit.run("add_content", **key, size=draft.size, chars=draft.chars, line_index=index, now=now):
        for position, frame in enumerate(draft.frames()):
            unit.put("add_chunk_frame", **key, position=position, frame=frame)
    elif not unit.run("hold_content", **key, now=now):
        # A sweep removed the content between the two statements.
        keep_content(unit, draft, now=now)
    elif tuple(unit.one("measure_frames", **key) or ()) != (len(draft.newlines), draft.starts[-1]):
        # Some frames are lost; replace the stored content with ours.
        unit.put("delete_content", **key)
        keep_content(unit, draft, now=now)


def _get_detail(unit: Unit, owner: Owner, key: str) -> Detail:
    row = unit.one("find_detail", **owner_params(owner), key=key)
    if row is None:
        raise NotFound(NO_SUCH_DETAIL)
    return detail_from(row)


def search_text(detail: Detail) -> str:
    """Return the folded text in which details are searched."""
    source = detail.metadata.get("source", "")
    return fold("\n".join([detail.key, detail.type, detail.description, detail.summary, str(source)]))
