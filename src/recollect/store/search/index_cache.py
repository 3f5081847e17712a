"""The search indexes of owners in use, kept in memory and checked before every search.

An agent's row carries two numbers, `revision` and `rewrites`. If neither has moved, the index in memory is right. If
only the first has, rows were appended and only those are read. If the second has too, something was edited or removed,
here or in another process, and the rows are compared. Numbers and rows are read on one snapshot. Whoever changes an
agent's index changes its row in the same transaction, and holds it until the commit: so neither can the numbers stand
still while rows change, nor can a row with a lower number be committed after one with a higher.

A transaction never takes an index back to an older state. One that finds the index read by a transaction that began
later uses it as it is: everything committed before its own beginning is in there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, TypeVar

from recollect.deadline import hold_in_time
from recollect.store.engine import Registered, Row, Unit
from recollect.store.search.encoding import Encoding
from recollect.store.search.index import OwnerIndex

NO_EMBEDDER = Registered(0, "", 0)

BATCH = 20_000
"""Rows read at once. More would be in memory twice, and a read that runs out of time keeps all batches before it."""

T = TypeVar("T")


class Read(Protocol):
    """`engine.Engine.read`."""

    def __call__(self, tenant: str, work: Callable[[Unit], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Shelf:
    """Whose index is meant: an agent's memories, or (without an agent) a tenant's chunks."""

    tenant: str
    agent: str | None = None

    def state(self, unit: Unit) -> Row | None:
        """(what tells this owner from an earlier one of the same name, revision, rewrites)"""
        return unit.one(f"{self._table}_state", **self._owner)

    def rows_after(self, unit: Unit, seq: int) -> Iterator[Sequence[Row]]:
        while rows := unit.all(f"{self._table}_after", **self._owner, seq=seq, limit=BATCH):
            yield rows
            if len(rows) < BATCH:
                return
            seq = rows[-1][0]

    def rows(self, unit: Unit, seqs: Any) -> Sequence[Row]:
        return unit.all(f"{self._table}_rows", **self._owner, seqs=seqs)

    def versions(self, unit: Unit) -> Sequence[Row]:
        return unit.all(f"{self._table}_versions", **self._owner)

    @property
    def _table(self) -> str:
        return "chunk_index" if self.agent is None else "memory_index"

    @property
    def _owner(self) -> dict[str, str]:
        return {"tenant": self.tenant} if self.agent is None else {"tenant": self.tenant, "agent": self.agent}


@dataclass(frozen=True, slots=True)
class _Held:
    """An index, the state of the database it was read at, and when the transaction began that read it."""

    index: OwnerIndex
    state: Row | None = None
    as_of: float = -inf


@dataclass(slots=True)
class _Cached:
    """The index of one owner in memory."""

    held: _Held
    nbytes: int = 0  # as last counted into the total
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexCache:
    """The indexes in memory: the least recently used go when they outgrow `max_bytes`."""

    def __init__(
        self, read: Read, *, encoding: Encoding, numbers: Callable[[Sequence[int]], Any], max_bytes: int
    ) -> None:
        self._read = read
        self._encoding = encoding
        self._numbers = numbers
        self._max_bytes = max_bytes
        self._cached: OrderedDict[Shelf, _Cached] = OrderedDict()
        self._total = 0  # bytes of all that is cached: counted as they change, so that nobody pays for others' indexes
        self._lock = threading.Lock()
        self._embedder = NO_EMBEDDER

    def use(self, embedder: Registered) -> None:
        with self._lock:
            self._embedder = embedder
        self.clear()

    def clear(self) -> None:
        """Drop everything; each next search reads anew."""
        with self._lock:
            self._cached.clear()
            self._total = 0

    def forget(self, tenant: str) -> None:
        """Drop a tenant's indexes."""
        with self._lock:
            for shelf in [shelf for shelf in self._cached if shelf.tenant == tenant]:
                self._total -= self._cached.pop(shelf).nbytes

    def is_held(self, shelf: Shelf) -> bool:
        return shelf in self._cached

    def drop(self, shelf: Shelf) -> None:
        """Drop one index."""
        with self._lock:
            cached = self._cached.pop(shelf, None)
            self._total -= 0 if cached is None else cached.nbytes

    def current(self, shelf: Shelf) -> OwnerIndex:
        """The shelf's index as of now."""
        with self._lock:
            cached = self._cached.get(shelf)
            if cached is None:
                cached = self._cached[shelf] = _Cached(_Held(OwnerIndex(self._embedder, self._encoding)))
            self._cached.move_to_end(shelf)
        index = self._read(shelf.tenant, lambda unit: self._checked(cached, shelf, unit))
        self._make_room(shelf, cached)
        return index

    def _checked(self, cached: _Cached, shelf: Shelf, unit: Unit) -> OwnerIndex:
        """Return the index as of now.

        The database is asked before the lock is taken: so whoever waits for the lock, or holds it, has its connection
        and its snapshot already, and no two threads wait for each other.
        """
        held = cached.held
        if unit.began <= held.as_of:
            return held.index
        state = shelf.state(unit)
        if held.state is not None and state == held.state:
            return held.index
        with hold_in_time(cached.lock):
            held = cached.held
            return held.index if unit.began <= held.as_of else self._refreshed(cached, shelf, unit, state)

    def _refreshed(self, cached: _Cached, shelf: Shelf, unit: Unit, state: Row | None) -> OwnerIndex:
        """Bring the index up to what the database holds, and return it."""
        index, known = cached.held.index, cached.held.state
        if state is None or known is None or state[0] != known[0]:  # a new owner, perhaps under an old name
            index = OwnerIndex(index.embedder, self._encoding)
        elif state[2] != known[2]:
            index = self._without_changed(index, shelf, unit)
        if state is not None and state != known:
            # Without a revision this state equals none, so that whoever comes after a failure reads on from here.
            cached.held = _Held(index, (state[0], None, state[2]))
            for rows in shelf.rows_after(unit, index.last_seq):
                index.append(rows)
        cached.held = _Held(index, state, unit.began)
        return index

    def _without_changed(self, index: OwnerIndex, shelf: Shelf, unit: Unit) -> OwnerIndex:
        """With rows that were removed taken out, and rows that were edited or embedded put in anew."""
        changed, wanted = index.differing(self._encoding.versions(shelf.versions(unit)))
        # A shelf has no life that erasing could end, so nothing of a passage is left behind.
        index = index.without(changed) if shelf.agent is None else index.hiding(changed)
        for start in range(0, len(wanted), BATCH):
            index.append(shelf.rows(unit, self._numbers(wanted[start : start + BATCH].tolist())))
        return index

    def _make_room(self, shelf: Shelf, cached: _Cached) -> None:
        """Count what the shelf's index takes now, and let go of those unused for longest if it is too much."""
        nbytes = cached.held.index.nbytes
        with self._lock:
            if self._cached.get(shelf) is not cached:  # evicted meanwhile, or of another embedder
                return
            self._total += nbytes - cached.nbytes
            cached.nbytes = nbytes
            while self._total > self._max_bytes and next(iter(self._cached)) != shelf:
                _, oldest = self._cached.popitem(last=False)
                self._total -= oldest.nbytes
