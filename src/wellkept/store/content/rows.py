"""Contents of details as rows, in PostgreSQL and in-memory databases, committed together with the detail."""

from __future__ import annotations

import tempfile as _tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime

from wellkept.errors import StoreError
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

IN_MEMORY_BYTES = 1024 * 1024
"""Compressed size up to which a draft stays in memory; larger ones go to an unnamed temporary file."""

SWEEP_BATCH = 50
"""Orphans listed by one statement."""


class RowDraft:
    """Draft of a content, compressed into a temporary file until its hash is known."""

    def __init__(self) -> None:
        # Closed by `close`.
        self.chunks = ChunkFile(_tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115
        self.is_sealed = False

    def feed(self, text: str) -> None:
        self.chunks.feed(text)

    def seal(self) -> None:
        if not self.is_sealed:
            self.is_sealed = True
            self.chunks.finish()

    def close(self) -> None:
        self.chunks.file.close()


class RowContent:
    """Stored content."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, engine: Engine, detail: Detail, newlines: Sequence[int]) -> None:
        self._engine = engine
        self._key = {"tenant": detail.owner.tenant, "content_hash": detail.content_hash}
        self.chars = detail.chars
        self.lines = detail.lines
        self.newlines = newlines

    def chunk(self, position: int) -> str:
        row = self._engine.read(
            self._key["tenant"], lambda unit: unit.one("find_frame", **self._key, position=position)
        )
        if row is None:
            raise StoreError(MISSING)
        return decompress_chunk(bytes(row[0]), chars=chunk_length(position, self.chars))


class ContentRows:
    """Contents of all tenants; each text is stored once per tenant."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, tenant: str) -> RowDraft:
        return RowDraft()

    def keep(self, unit: Unit, draft: RowDraft, *, now: datetime) -> None:
        """Store the draft's content in the transaction that adds the detail."""
        chunks = draft.chunks
        key_params = {"tenant": unit.tenant, "content_hash": chunks.content_hash}
        index = pack_numbers(chunks.index.newlines)
        if unit.run("add_content", **key_params, size=chunks.size, chars=chunks.chars, line_index=index, now=now):
            for position, frame in enumerate(chunks.frames()):
                unit.put("add_chunk_frame", **key_params, position=position, frame=frame)
        elif not unit.run("hold_content", **key_params, now=now):
            # A sweep removed the content between the two statements.
            self.keep(unit, draft, now=now)
        elif tuple(unit.one("measure_frames", **key_params) or ()) != (
            len(chunks.index.newlines),
            chunks.index.starts[-1],
        ):
            # Some frames are lost; replace the stored content with ours.
            unit.put("delete_content", **key_params)
            self.keep(unit, draft, now=now)

    def open(self, detail: Detail) -> RowContent:
        tenant = detail.owner.tenant
        row = self._engine.read(
            tenant, lambda unit: unit.one("find_content", tenant=tenant, content_hash=detail.content_hash)
        )
        if row is None:
            raise StoreError(MISSING)
        size, chars, line_index = row
        newlines = unpack_numbers(bytes(line_index))
        if (size, chars) != (detail.size, detail.chars) or len(newlines) != -(-chars // CHUNK_CHARS):
            raise StoreError(DAMAGED)
        return RowContent(self._engine, detail, newlines)

    def pieces(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """Yield the whole text chunk by chunk, within the caller's transaction."""
        key_params = {"tenant": unit.tenant, "content_hash": detail.content_hash}
        for position in range(-(-detail.chars // CHUNK_CHARS)):
            row = unit.one("find_frame", **key_params, position=position)
            if row is None:
                raise StoreError(MISSING)
            yield decompress_chunk(bytes(row[0]), chars=chunk_length(position, detail.chars))

    def sweep(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        swept, values = 0, {"tenant": tenant, "stored_before": stored_before, "limit": SWEEP_BATCH}
        while orphans := self._engine.read(tenant, lambda unit: unit.all("list_orphans", **values)):
            dropped = sum(self.drop(tenant, content_hash) for (content_hash,) in orphans)
            swept += dropped
            # Some are in use again; leave the rest to the next sweep.
            if dropped < len(orphans):
                break
        return swept

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        values = {"tenant": tenant, "stored_before": stored_before}
        ((count,),) = self._engine.read(tenant, lambda unit: unit.all("count_orphans", **values))
        return int(count)

    def count_unknown(self, tenant: str, *, stored_before: datetime) -> int:
        # Contents stored as rows are always known to the database.
        return 0

    def drop(self, tenant: str, content_hash: str) -> bool:
        key_params = {"tenant": tenant, "content_hash": content_hash}

        def drop(unit: Unit) -> bool:
            if unit.one("lock_content", **key_params) is None or unit.one("count_content_rows", **key_params) != (0,):
                return False
            return unit.run("delete_content", **key_params) > 0

        return self._engine.write(tenant, drop)
