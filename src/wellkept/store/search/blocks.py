"""Blocks of an agent's search index in the database, in the form in which the index is used.

Building an index from rows takes several times as long as reading it in blocks. A block holds the entries of a closed
range of numbers, and nothing that the rows do not hold. Triggers of the database remove it with the first of its
entries that is deleted, erased or edited, and note entries whose end moves (`index_changes`). So a block, with the
entries noted since replaced by their rows, always equals the rows, whichever program changes them.

Blocks are written in the background after an index was built from rows. The rows are read first; the transaction that
writes the block checks that no entry was changed since, so it cannot bring back what was removed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from wellkept.store.engine import RegisteredEmbedder, Row, Unit
from wellkept.store.search.encoding import Encoding
from wellkept.store.search.index import OwnerIndex
from wellkept.store.tables.rows import BEHIND_ALL

if TYPE_CHECKING:
    from wellkept.store.search.index_cache import IndexKey

FORMAT = 1
"""Version of the form of blocks. Those of another program are left alone, and overwritten by blocks of this one."""

BLOCK_BYTES = 1 << 22
"""Bytes of the vectors of a block: 16,384 of 256 dimensions."""

MAX_ENTRIES = 1 << 14
"""Numbers in the range of a block, if vectors are short."""

MIN_SHARE = 1 / 16
"""Share of the numbers in a range that must have an entry for it to be worth a block."""

MAX_NOTED = 512
"""Entries of a block that are noted as changed from which on it is written again."""

MAX_AGE = 4096
"""Changes of an agent's index after which a block is written again, so that older notes can be removed."""

T = TypeVar("T")


class Transact(Protocol):
    """Type of `engine.Engine.read` and `engine.Engine.write`."""

    def __call__(self, tenant: str, work: Callable[[Unit], T]) -> T: ...


class IndexBlocks:
    """Reader and writer of blocks."""

    def __init__(self, read: Transact, write: Transact, *, encoding: Encoding, numbers: Callable[[Sequence[int]], Any]):
        self._read, self._write, self._encoding, self._numbers = read, write, encoding, numbers

    def load(self, unit: Unit, key: IndexKey, index: OwnerIndex) -> bool:
        """Append all blocks, and the rows of ranges before and between them, to an empty index.

        Return True if some ranges should get a block. After a failure, the index holds everything up to its
        `last_seq`.
        """
        embedder = index.embedder
        blocks = unit.all("list_index_blocks", **key.owner, embedder_id=embedder.id, format=FORMAT)
        noted = self._read_noted(unit, key, blocks)
        index.reserve(sum(entries for *_, entries in blocks))
        is_lacking, size = False, range_size(embedder)
        for first, last, rewrites, _ in blocks:
            if index.last_seq < first - 1:
                is_lacking |= self._load_rows(unit, key, index, first - 1) >= MIN_SHARE * size
            changed = [seq for at, seq in noted if at > rewrites and first <= seq <= last]
            # Read before anything is appended, because `last_seq` says that nothing is missing below it.
            rows = key.rows(unit, self._numbers(changed)) if changed else ()
            found = unit.one("read_index_block", **key.owner, first=first, last=last)
            assert found is not None
            part = OwnerIndex.load(found[0], embedder, self._encoding)
            if changed:
                part = part.without(np.array(changed))
                part.append(rows)
            index.append_part(part, last)
            is_lacking |= len(changed) > MAX_NOTED
        return self._load_rows(unit, key, index) >= size or is_lacking

    def find_moved(self, unit: Unit, key: IndexKey, before: int, now: int) -> Sequence[int] | None:
        """Return the entries whose end moved between two values of `rewrites`; None if other changes were made.

        Each change of an index counts `rewrites` up, and only those of an end are noted.
        """
        noted = unit.all("list_index_changes", **key.owner, rewrites=before) if now - before <= MAX_AGE else ()
        return [seq for _, seq in noted] if len({at for at, _ in noted}) == now - before else None

    def _read_noted(self, unit: Unit, key: IndexKey, blocks: Sequence[Row]) -> Sequence[Row]:
        oldest = min((rewrites for _, _, rewrites, _ in blocks), default=None)
        return () if oldest is None else unit.all("list_index_changes", **key.owner, rewrites=oldest)

    def _load_rows(self, unit: Unit, key: IndexKey, index: OwnerIndex, last: int = BEHIND_ALL) -> int:
        """Append the rows up to a number, or all, and return how many there were."""
        before = index.count
        for rows in key.rows_after(unit, index.last_seq, last):
            index.append(rows)
        return index.count - before

    def save(self, key: IndexKey, embedder: RegisteredEmbedder) -> None:
        """Write the blocks that an agent lacks, one transaction for each of them."""
        tenant, size = key.tenant, range_size(embedder)
        state, last_seq, blocks, noted = self._read(tenant, lambda unit: self._read_state(unit, key, embedder))
        if state is None:
            return
        kept = set[int]()
        for first, last, rewrites, _ in blocks:
            changed = sum(at > rewrites and first <= seq <= last for at, seq in noted)
            if changed <= MAX_NOTED and state[2] - rewrites <= MAX_AGE:
                kept.add(first)
        for first in range(0, last_seq - size + 1, size):
            if first not in kept:
                self._save_block(key, embedder, first, first + size - 1)
        self._write(tenant, lambda unit: unit.put("drop_index_changes", **key.owner))

    def _read_state(
        self, unit: Unit, key: IndexKey, embedder: RegisteredEmbedder
    ) -> tuple[Row | None, int, Sequence[Row], Sequence[Row]]:
        blocks = unit.all("list_index_blocks", **key.owner, embedder_id=embedder.id, format=FORMAT)
        last = unit.one("last_number", **key.owner)
        noted = self._read_noted(unit, key, blocks)
        return key.state(unit), last[0] if last is not None else 0, blocks, noted

    def _save_block(self, key: IndexKey, embedder: RegisteredEmbedder, first: int, last: int) -> None:
        def read(unit: Unit) -> tuple[Row | None, OwnerIndex]:
            part = OwnerIndex(embedder, self._encoding)
            for rows in key.rows_after(unit, first - 1, last):
                part.append(rows)
            return key.state(unit), part

        state, part = self._read(key.tenant, read)
        if state is None or part.count < MIN_SHARE * (last - first + 1):
            return
        values = {"first": first, "last": last, "embedder_id": embedder.id, "rewrites": state[2], "format": FORMAT}
        data = part.dump()

        def write(unit: Unit) -> None:
            now = key.state(unit)
            if now is not None and (now[0], now[2]) == (state[0], state[2]):
                unit.put("drop_index_blocks", **key.owner, first=first, last=last)
                unit.put("put_index_block", **key.owner, **values, entries=part.count, data=data)

        self._write(key.tenant, write)


def range_size(embedder: RegisteredEmbedder) -> int:
    """Return how many numbers a block covers."""
    return min(MAX_ENTRIES, max(1, BLOCK_BYTES // max(embedder.dimensions, 1)))
