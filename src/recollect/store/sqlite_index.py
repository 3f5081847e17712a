"""Search on SQLite: the index of each owner in use is kept in memory and checked before every search.

An agent's row carries two numbers, `revision` and `rewrites`. If neither has moved, the index in memory is right. If
only the first has, rows were appended and only those are read. If the second has too, something was edited or removed,
here or in another process, and the rows are compared.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect.model import Kind, Match, Owner
from recollect.policy.similarity import Evidence
from recollect.ports import Vector
from recollect.store.engine import Registered, Row, Unit
from recollect.store.index import OwnerIndex, Wanted, encode_terms, encode_vector
from recollect.store.texts import Texts

NO_EMBEDDER = Registered(0, "", 0)
ALWAYS = float("-inf")

Read = Callable[[str, Callable[[Unit], None]], None]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Whose index is meant: an agent's memories, or (without an agent) a tenant's chunks."""

    tenant: str
    agent: str | None = None

    def state(self, unit: Unit) -> Row | None:
        """(what tells this owner from an earlier one of the same name, revision, rewrites)"""
        return unit.one(f"{self._table}_state", **self._owner)

    def rows_after(self, unit: Unit, seq: int) -> Sequence[Row]:
        return unit.all(f"{self._table}_after", **self._owner, seq=seq)

    def rows(self, unit: Unit, seqs: Sequence[int]) -> Sequence[Row]:
        return unit.all(f"{self._table}_rows", **self._owner, seqs=json.dumps(seqs)) if seqs else []

    def versions(self, unit: Unit) -> Sequence[Row]:
        return unit.all(f"{self._table}_versions", **self._owner)

    @property
    def _table(self) -> str:
        return "chunk_index" if self.agent is None else "memory_index"

    @property
    def _owner(self) -> dict[str, str]:
        return {"tenant": self.tenant} if self.agent is None else {"tenant": self.tenant, "agent": self.agent}


@dataclass(slots=True)
class _Cached:
    """An index and the state of the database it was read at."""

    index: OwnerIndex
    state: Row | None = None
    nbytes: int = 0  # as last counted into the total
    lock: threading.Lock = field(default_factory=threading.Lock)


class SqliteIndex:
    """The indexes in memory: the least recently used go when they outgrow `max_bytes`."""

    def __init__(self, read: Read, *, max_bytes: int) -> None:
        self._read = read
        self._texts = Texts(read)
        self._max_bytes = max_bytes
        self._cached: OrderedDict[_Shelf, _Cached] = OrderedDict()
        self._total = 0  # bytes of all that is cached: counted as they change, so that nobody pays for others' indexes
        self._lock = threading.Lock()
        self._embedder = NO_EMBEDDER

    def use(self, embedder: Registered) -> None:
        with self._lock:
            self._embedder = embedder
            self._cached.clear()
            self._total = 0

    def forget(self, tenant: str) -> None:
        """Drop a tenant's indexes; the next search reads them anew."""
        self._texts.forget(tenant)
        with self._lock:
            for shelf in [shelf for shelf in self._cached if shelf.tenant == tenant]:
                self._total -= self._cached.pop(shelf).nbytes

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        self._embedder.check(vectors)
        return [
            {
                "terms": encode_terms(words),
                "embedder_id": None if vector is None else self._embedder.id,
                "vector": None if vector is None else encode_vector(vector),
            }
            for words, vector in zip(terms, vectors, strict=True)
        ]

    def search_memories(
        self, owner: Owner, terms: Sequence[str], *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        return self._current(_Shelf(owner.tenant, owner.agent)).search(terms, Wanted(kinds, now.timestamp()), limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int
    ) -> Sequence[Match]:
        return self._current(_Shelf(owner.tenant, owner.agent)).nearest(vector, Wanted(kinds, now.timestamp()), limit)

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool,
    ) -> Evidence:
        wanted = Wanted(kinds, now.timestamp(), until=int(now.timestamp()) if is_past else None)
        return self._current(_Shelf(owner.tenant, owner.agent)).evidence(terms, vector, wanted)

    def numbers_holding(self, owner: Owner, needle: str) -> Iterator[int] | None:
        return self._texts.holding(owner, needle)

    def search_chunks(
        self, tenant: str, terms: Sequence[str], *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        return self._current(_Shelf(tenant)).search(terms, Wanted(categories, ALWAYS), limit)

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str], limit: int
    ) -> Sequence[Match]:
        return self._current(_Shelf(tenant)).nearest(vector, Wanted(categories, ALWAYS), limit)

    def _current(self, shelf: _Shelf) -> OwnerIndex:
        """The shelf's index as of now."""
        with self._lock:
            cached = self._cached.get(shelf)
            if cached is None:
                cached = self._cached[shelf] = _Cached(OwnerIndex(self._embedder))
            self._cached.move_to_end(shelf)
        with cached.lock:
            self._read(shelf.tenant, lambda unit: _refresh(cached, shelf, unit))
            index = cached.index
        self._make_room(shelf, cached)
        return index

    def _make_room(self, shelf: _Shelf, cached: _Cached) -> None:
        """Count what the shelf's index takes now, and let go of those unused for longest if it is too much."""
        nbytes = cached.index.nbytes
        with self._lock:
            if self._cached.get(shelf) is not cached:  # evicted meanwhile, or of another embedder
                return
            self._total += nbytes - cached.nbytes
            cached.nbytes = nbytes
            while self._total > self._max_bytes and next(iter(self._cached)) != shelf:
                _, oldest = self._cached.popitem(last=False)
                self._total -= oldest.nbytes


def _refresh(cached: _Cached, shelf: _Shelf, unit: Unit) -> None:
    """Make the index what the database holds."""
    state, known = shelf.state(unit), cached.state
    if state is None or known is None or state[0] != known[0]:  # a new owner, perhaps under an old name
        cached.index = OwnerIndex(cached.index.embedder)
    elif state[2] != known[2]:
        _drop_changed(cached, shelf, unit)
    if state is not None and state != known:
        cached.index.append(shelf.rows_after(unit, cached.index.last_seq))
    cached.state = state


def _drop_changed(cached: _Cached, shelf: _Shelf, unit: Unit) -> None:
    """Take out rows that were removed, and put rows that were edited or embedded in anew."""
    held = cached.index.versions()
    stored = {
        seq: (version, embedder_id == cached.index.embedder.id)
        for seq, version, embedder_id in shelf.versions(unit)
        if seq <= cached.index.last_seq
    }
    cached.index = cached.index.without([seq for seq, version in held.items() if stored.get(seq) != version])
    cached.index.append(shelf.rows(unit, [seq for seq, version in stored.items() if held.get(seq) != version]))
