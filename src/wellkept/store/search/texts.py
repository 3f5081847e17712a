"""Cache of case-folded memory texts for substring searches.

A database scans ten thousand rows one by one; Python scans the same characters as one string. As for the search index,
two numbers in the agent's row tell if the cache is current. If only `revision` has changed, rows were added and only
those are read. If `rewrites` has changed, the texts are dropped, and read again when two consecutive searches see the
same number: an agent that edits between searches is better served by the database.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from wellkept.model import Owner
from wellkept.store.engine import Row, Unit

BLOCK = 256
"""Texts joined into one string. Blocks are searched newest first and usually only a few are needed."""

BORDER = "\x00"
"""Delimiter between texts; neither a text nor a needle can contain it."""

MAX_BYTES = 64 * 1024 * 1024
"""Memory limit for all agents; the least recently used are evicted. The database searches an agent that exceeds it."""

MAX_AGENTS = 10_000
"""Maximum number of agents in the cache."""

Read = Callable[[str, Callable[[Unit], None]], None]


@dataclass(frozen=True, slots=True)
class _Block:
    """Texts joined into one string, oldest first."""

    seqs: Sequence[int]
    joined: str
    starts: Sequence[int]  # offset of each text

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> _Block:
        starts, end = [], 0
        for _, folded in rows:
            starts.append(end)
            end += len(folded) + len(BORDER)
        return cls([seq for seq, _ in rows], BORDER.join(folded for _, folded in rows), starts)

    @property
    def nbytes(self) -> int:
        return sys.getsizeof(self.joined) + 16 * len(self.seqs)

    def holding(self, needle: str) -> Iterator[int]:
        """Yield the numbers of the texts that contain `needle`, newest first."""
        at = self.joined.rfind(needle)
        while at >= 0:
            place = bisect_right(self.starts, at) - 1
            yield self.seqs[place]
            at = self.joined.rfind(needle, 0, max(self.starts[place] - len(BORDER), 0)) if place else -1


@dataclass(slots=True)
class _Held:
    """Cached texts of one agent."""

    state: Row | None = None  # state in the agent's row at the last search
    blocks: tuple[_Block, ...] | None = None  # None if not loaded
    is_too_large: bool = False
    nbytes: int = 0  # size included in the total
    lock: threading.Lock = field(default_factory=threading.Lock)


class Texts:
    """Cache of the texts of searched agents."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._held: OrderedDict[Owner, _Held] = OrderedDict()
        self._total = 0

    def holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        """Return the numbers of an agent's unarchived memories whose folded text contains `needle`, newest first.

        Return None if the texts are not cached and the database has to search.
        """
        with self._lock:
            held = self._held.get(owner)
            if held is None:
                held = self._held[owner] = _Held()
            self._held.move_to_end(owner)
        with held.lock:
            self._read(owner.tenant, lambda unit: _refresh(held, owner, unit))
            # Another search may have found them too large meanwhile; then the blocks are no longer kept current.
            blocks = None if held.is_too_large else held.blocks
        self._evict(owner, held)
        return None if blocks is None else (seq for block in reversed(blocks) for seq in block.holding(needle))

    def forget(self, tenant: str) -> None:
        """Drop the texts of a tenant."""
        with self._lock:
            for owner in [owner for owner in self._held if owner.tenant == tenant]:
                self._total -= self._held.pop(owner).nbytes

    def clear(self) -> None:
        """Drop all texts."""
        with self._lock:
            self._held.clear()
            self._total = 0

    def _evict(self, owner: Owner, held: _Held) -> None:
        nbytes = sum(block.nbytes for block in held.blocks or ())
        with self._lock:
            if self._held.get(owner) is not held:
                return
            self._total += nbytes - held.nbytes
            held.nbytes = nbytes
            if nbytes > MAX_BYTES:
                self._total -= nbytes
                held.nbytes, held.blocks, held.is_too_large = 0, None, True
            while self._total > MAX_BYTES or len(self._held) > MAX_AGENTS:
                _, oldest = self._held.popitem(last=False)
                self._total -= oldest.nbytes


def _refresh(held: _Held, owner: Owner, unit: Unit) -> None:
    if held.is_too_large:
        return
    known, blocks = held.state, held.blocks
    state = unit.one("memory_index_state", tenant=owner.tenant, agent=owner.agent)
    if state is None or known is None or (state[0], state[2]) != (known[0], known[2]):
        blocks = None
    elif blocks is None or state != known:
        blocks = _append_new(blocks or (), owner, unit)
    # Set both only after the rows were read: a new state with old rows would pass for current.
    held.state, held.blocks = state, blocks


def _append_new(blocks: tuple[_Block, ...], owner: Owner, unit: Unit) -> tuple[_Block, ...]:
    """Append the rows added since; rebuild the last block if it was not full."""
    full_blocks = blocks[:-1] if blocks and len(blocks[-1].seqs) < BLOCK else blocks
    last = full_blocks[-1].seqs[-1] if full_blocks else 0
    rows = unit.all("texts_after", tenant=owner.tenant, agent=owner.agent, seq=last)
    return (*full_blocks, *(_Block.from_rows(rows[start : start + BLOCK]) for start in range(0, len(rows), BLOCK)))
