"""Contents as rows: in PostgreSQL, and in a database in memory. Chunks and detail are committed together."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime

from recollect.errors import StoreError
from recollect.model import Detail
from recollect.store.content.chunks import (
    CHUNK_CHARS,
    DAMAGED,
    MISSING,
    ChunkFile,
    chunk_length,
    expanded,
    packed_numbers,
    unpacked_numbers,
)
from recollect.store.engine import Engine, Unit

IN_MEMORY_BYTES = 1024 * 1024
"""A compressed text waits in memory up to this length, then in a nameless file."""

SWEEP_BATCH = 50


class RowDraft:
    """`ports.ContentDraft`: compressed into a nameless file, until the hash is known under which it is kept."""

    def __init__(self) -> None:
        self.chunks = ChunkFile(tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115  closed by `close`
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
    """`ports.Content`."""

    chunk_chars = CHUNK_CHARS

    def __init__(self, engine: Engine, detail: Detail, newlines: Sequence[int]) -> None:
        self._engine = engine
        self._where = {"tenant": detail.owner.tenant, "content_hash": detail.content_hash}
        self.chars = detail.chars
        self.lines = detail.lines
        self.newlines = newlines

    def chunk(self, position: int) -> str:
        row = self._engine.read(
            self._where["tenant"], lambda unit: unit.one("find_frame", **self._where, position=position)
        )
        if row is None:
            raise StoreError(MISSING)
        return expanded(bytes(row[0]), chars=chunk_length(position, self.chars))


class ContentRows:
    """Every tenant's contents, each once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, tenant: str) -> RowDraft:
        return RowDraft()

    def keep(self, unit: Unit, draft: RowDraft, *, now: datetime) -> None:
        """Inside the transaction that adds the detail."""
        chunks = draft.chunks
        where = {"tenant": unit.tenant, "content_hash": chunks.content_hash}
        index = packed_numbers(chunks.index.newlines)
        if unit.run("add_content", **where, size=chunks.size, chars=chunks.chars, line_index=index, now=now):
            for position, frame in enumerate(chunks.frames()):
                unit.run("add_chunk_frame", **where, position=position, frame=frame)
        elif not unit.run("hold_content", **where, now=now):
            self.keep(unit, draft, now=now)  # swept between the two statements
        elif tuple(unit.one("measure_frames", **where) or ()) != (len(chunks.index.newlines), chunks.index.starts[-1]):
            unit.run("delete_content", **where)  # some of it was lost; ours takes its place
            self.keep(unit, draft, now=now)

    def open(self, detail: Detail) -> RowContent:
        tenant = detail.owner.tenant
        row = self._engine.read(
            tenant, lambda unit: unit.one("find_content", tenant=tenant, content_hash=detail.content_hash)
        )
        if row is None:
            raise StoreError(MISSING)
        size, chars, line_index = row
        newlines = unpacked_numbers(bytes(line_index))
        if (size, chars) != (detail.size, detail.chars) or len(newlines) != -(-chars // CHUNK_CHARS):
            raise StoreError(DAMAGED)
        return RowContent(self._engine, detail, newlines)

    def pieces(self, unit: Unit, detail: Detail) -> Iterator[str]:
        """The whole text, chunk by chunk, for who reads many of them in one transaction."""
        where = {"tenant": unit.tenant, "content_hash": detail.content_hash}
        for position in range(-(-detail.chars // CHUNK_CHARS)):
            row = unit.one("find_frame", **where, position=position)
            if row is None:
                raise StoreError(MISSING)
            yield expanded(bytes(row[0]), chars=chunk_length(position, detail.chars))

    def sweep(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        swept, values = 0, {"tenant": tenant, "stored_before": stored_before, "limit": SWEEP_BATCH}
        while orphans := self._engine.read(tenant, lambda unit: unit.all("list_orphans", **values)):
            dropped = sum(self.drop(tenant, content_hash) for (content_hash,) in orphans)
            swept += dropped
            if dropped < len(orphans):  # somebody came to need one; the next run looks again
                break
        return swept

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        values = {"tenant": tenant, "stored_before": stored_before}
        ((count,),) = self._engine.read(tenant, lambda unit: unit.all("count_orphans", **values))
        return int(count)

    def count_unknown(self, tenant: str, *, stored_before: datetime) -> int:
        return 0  # what is in the database is known to it

    def drop(self, tenant: str, content_hash: str) -> bool:
        where = {"tenant": tenant, "content_hash": content_hash}

        def drop(unit: Unit) -> bool:
            if unit.one("lock_content", **where) is None or unit.one("count_content_rows", **where) != (0,):
                return False
            return unit.run("delete_content", **where) > 0

        return self._engine.write(tenant, drop)
