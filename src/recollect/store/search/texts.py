"""What each agent's memories say, case-folded and in memory: for finding a part of a text without reading every row.

A database looks at ten thousand rows one by one; Python looks through the same characters in one piece. The two numbers
in the agent's row tell, as for the search index, whether what is held is right. If only `revision` has moved, rows were
added and only those are read. If `rewrites` has, what is held is let go, and read again once a search finds that it has
not moved since the one before: who edits between searches is better off with the database.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from recollect.model import Owner
from recollect.store.engine import Row, Unit

BLOCK = 256
"""Texts that are looked through in one piece, newest first: the first matches are mostly in the first few."""

BORDER = "\x00"
"""Stands between texts; neither a text nor a needle can hold it."""

MAX_BYTES = 64 * 1024 * 1024
"""What is held of all agents together; the least recently used go. One with more than that is left to the database."""

MAX_AGENTS = 10_000

Read = Callable[[str, Callable[[Unit], None]], None]


@dataclass(frozen=True, slots=True)
class _Block:
    """Some texts side by side, oldest first."""

    seqs: Sequence[int]
    joined: str
    starts: Sequence[int]  # where each begins

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Block:
        starts, behind = [], 0
        for _, folded in rows:
            starts.append(behind)
            behind += len(folded) + len(BORDER)
        return cls([seq for seq, _ in rows], BORDER.join(folded for _, folded in rows), starts)

    @property
    def nbytes(self) -> int:
        return sys.getsizeof(self.joined) + 16 * len(self.seqs)

    def holding(self, needle: str) -> Iterator[int]:
        """The numbers of the texts that hold `needle`, newest first."""
        at = self.joined.rfind(needle)
        while at >= 0:
            place = bisect_right(self.starts, at) - 1
            yield self.seqs[place]
            at = self.joined.rfind(needle, 0, max(self.starts[place] - len(BORDER), 0)) if place else -1


@dataclass(slots=True)
class _Held:
    state: Row | None = None  # of the agent's row when it was last looked at
    blocks: tuple[_Block, ...] | None = None  # None: not read
    is_too_large: bool = False
    nbytes: int = 0  # as last counted into the total
    lock: threading.Lock = field(default_factory=threading.Lock)


class Texts:
    """The texts of the agents that are searched."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._held: OrderedDict[Owner, _Held] = OrderedDict()
        self._total = 0

    def holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        """The numbers of all memories of an agent whose folded text holds `needle`, newest first, but for archived
        ones; None if they are not held and the database has to be asked."""
        with self._lock:
            held = self._held.get(owner)
            if held is None:
                held = self._held[owner] = _Held()
            self._held.move_to_end(owner)
        with held.lock:
            self._read(owner.tenant, lambda unit: _refresh(held, owner, unit))
            # Found too large a moment ago, by another search: then nobody keeps the blocks up to date.
            blocks = None if held.is_too_large else held.blocks
        self._make_room(owner, held)
        return None if blocks is None else (seq for block in reversed(blocks) for seq in block.holding(needle))

    def forget(self, tenant: str) -> None:
        """Let go of what is held of a tenant."""
        with self._lock:
            for owner in [owner for owner in self._held if owner.tenant == tenant]:
                self._total -= self._held.pop(owner).nbytes

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self._total = 0

    def _make_room(self, owner: Owner, held: _Held) -> None:
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
        blocks = _extended(blocks or (), owner, unit)
    # Both, once the rows were read: a state without its rows would pass for up to date.
    held.state, held.blocks = state, blocks


def _extended(blocks: tuple[_Block, ...], owner: Owner, unit: Unit) -> tuple[_Block, ...]:
    """With the rows that came since; a last block that is not full yet is made anew."""
    whole = blocks[:-1] if blocks and len(blocks[-1].seqs) < BLOCK else blocks
    last = whole[-1].seqs[-1] if whole else 0
    rows = unit.all("texts_after", tenant=owner.tenant, agent=owner.agent, seq=last)
    return (*whole, *(_Block.of(rows[start : start + BLOCK]) for start in range(0, len(rows), BLOCK)))
