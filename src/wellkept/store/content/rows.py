"""Contents of details as rows, committed together with the detail."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from wellkept.errors import DiskFull, StoreError
from wellkept.model import Detail
from wellkept.store.content.chunks import (
    CHUNK_CHARS,
    DAMAGED,
    MISSING,
    ChunkFile,
    chunk_length,
    decompress_chunk,
    pack_numbers,
    unpack_numbers,
)
from wellkept.store.engine import Engine, Unit
from wellkept.store.sqlite.text_files import KEPT_AFTER_MOVE, TextFile, move_texts, remove_file

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
