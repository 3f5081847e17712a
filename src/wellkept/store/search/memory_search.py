"""Search of memories, passages and history in cached indexes.

Cache of search indexes, checked against the database before every search.

An agent's row carries two numbers, `revision` and `rewrites`. If neither has changed, the cached index is current. If
only `revision` has, rows were appended and only those are read. If `rewrites` has changed too, rows were edited or
removed, here or in another process, and all versions are compared. Numbers and rows are read from one snapshot. A
writer updates the agent's row in the same transaction as the index and locks it until commit. So the numbers cannot
stay the same while rows change, and a lower row number cannot be committed after a higher one.

A transaction never returns an index to an older state. If the index was read by a transaction that began later, it is
used unchanged, because it includes everything committed before.

`current` loads an index that is missing and waits for one that another thread brings up to date. An engine that can
search without an index uses `find` instead, which does neither, and `load` on another thread.

History is append-only: its index is a list of words that holds the newest entries, and its revision is their last
number. Recording an event, which every change of a memory does, writes nothing for the search.

Indexes that are loaded in the background for owners that are asked often, while searches are answered without them.

Loading an index costs as much as answering some dozen questions from the database, so an owner gets one only if it was
asked repeatedly within minutes. If the cache is full, it must also have been asked clearly more often than the owners
whose indexes have to make room: otherwise many owners asked in turn would only displace each other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar

import numpy as np

from wellkept.deadline import hold_in_time
from wellkept.errors import WellkeptError
from wellkept.knowledge.rules_passages import PassageEvidence
from wellkept.memory.rules_filters import Comparison
from wellkept.meter import METER, Meter
from wellkept.model import NO_USER, Match, Owner, Role
from wellkept.model.stored import Vector
from wellkept.recall.rules_features import Evidence
from wellkept.store.conditions import Clause, compile_field, compile_filter
from wellkept.store.engine import IndexQuery, RegisteredEmbedder, Row, Unit, merge_parts
from wellkept.store.search.encoding import COMPACT_ENCODING, Encoding
from wellkept.store.search.index import OwnerIndex

log = logging.getLogger("wellkept")

NO_EMBEDDER = RegisteredEmbedder(0, "", 0)

BATCH = 20_000
"""Rows read at once. Larger batches are in memory twice, and a read that times out keeps all batches before it."""

HISTORY_BATCH = 10_000
"""Entries of history read at once."""

HISTORY_BYTES = 64 * 1024 * 1024
"""Memory limit for the words of history of all tenants."""

SPARE = 1.25
"""A list of history may grow to this multiple of the searched range before its oldest part is dropped."""

T = TypeVar("T")


class Read(Protocol):
    """Type of `engine.Engine.read`."""

    def __call__(self, tenant: str, work: Callable[[Unit], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class IndexKey:
    """Key of an index: the memories of an agent or of one of its users or, without an agent, a tenant's passages."""

    tenant: str
    agent: str | None = None
    user: str | None = None

    def state(self, unit: Unit) -> Row | None:
        """Read (generation, revision, rewrites). A later owner of the same name has another generation."""
        return unit.one(f"{self._table}_state", **self.owner)

    def rows_after(self, unit: Unit, seq: int) -> Iterator[Sequence[Row]]:
        """Yield the rows after a number in batches."""
        while rows := unit.all(f"{self._table}_after", **self.owner, seq=seq, limit=BATCH):
            yield rows
            if len(rows) < BATCH:
                return
            seq = rows[-1][0]

    def rows(self, unit: Unit, seqs: Any) -> Sequence[Row]:
        return unit.all(f"{self._table}_rows", **self.owner, seqs=seqs)

    def fields(self, unit: Unit, seqs: Any, select: Clause) -> Sequence[Row]:
        return unit.all("memory_fields", select, **self.owner, seqs=seqs)

    def versions(self, unit: Unit) -> Sequence[Row]:
        return unit.all(f"{self._table}_versions", **self.owner)

    @property
    def _table(self) -> str:
        return "chunk_index" if self.agent is None else "memory_index"

    @property
    def owner(self) -> dict[str, str]:
        """Parameters of statements on the owner's rows."""
        names = {"tenant": self.tenant, "agent": self.agent, "user": self.user}
        return {name: value for name, value in names.items() if value is not None}

    def trim(self, index: OwnerIndex) -> OwnerIndex:
        return index


@dataclass(frozen=True, slots=True)
class HistoryKey:
    """Key of the words of a tenant's history of one kind, such as its audit events."""

    tenant: str
    name: str
    last: Callable[[Unit], int]  # reads the last number
    after: Callable[
        [Unit, int, int], Sequence[tuple[int, bytes]]
    ]  # reads number and words after a number, up to a limit
    max_searched: int
    agent: None = None

    def state(self, unit: Unit) -> Row | None:
        return 0, self.last(unit), 0

    def rows_after(self, unit: Unit, seq: int) -> Iterator[Sequence[Row]]:
        """Yield the rows after a number, among the newest, in batches."""
        seq = max(seq, self.last(unit) - self.max_searched)
        while found := self.after(unit, seq, HISTORY_BATCH):
            yield [(number, 1, "", None, terms, None, None, None, Role.USER.value, 0) for number, terms in found]
            if len(found) < HISTORY_BATCH:
                return
            seq = found[-1][0]

    def trim(self, index: OwnerIndex) -> OwnerIndex:
        """Drop the oldest part of a list that has become much longer than what is searched."""
        if index.count <= SPARE * self.max_searched:
            return index
        return index.without(index.seqs[index.seqs <= index.last_seq - self.max_searched])


Shelf = IndexKey | HistoryKey


@dataclass(frozen=True, slots=True)
class _Held:
    """Index with the state of the database it was read at, and the start of the transaction that read it."""

    index: OwnerIndex
    state: Row | None = None
    as_of: float = -inf


@dataclass(slots=True)
class _Cached:
    """Index of one owner in memory."""

    held: _Held
    nbytes: int = 0  # size included in the total
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexCache:
    """Cache of indexes; evicts the least recently used ones above `max_bytes`.

    With `keeps_last`, the one that was used last stays even if it is larger.
    """

    def __init__(
        self, read: Read, *, encoding: Encoding, max_bytes: int, keeps_last: bool, is_metered: bool = True
    ) -> None:
        self._read = read
        self._keeps_last = keeps_last
        self._encoding = encoding
        self._max_bytes = max_bytes
        self._is_metered = is_metered
        self._cached: OrderedDict[Shelf, _Cached] = OrderedDict()
        # Bytes of all indexes, updated incrementally: a search must not pay for measuring the indexes of others.
        self._total = 0
        self._lock = threading.Lock()
        self._embedder = NO_EMBEDDER
        self._dropped = 0  # times that indexes were dropped on demand: none that was loading then may be kept

    def use(self, embedder: RegisteredEmbedder) -> None:
        with self._lock:
            self._embedder = embedder
        self.clear()

    def clear(self) -> None:
        """Drop all indexes; the next searches reload them."""
        with self._lock:
            self._dropped += 1
            self._cached.clear()
            self._total = 0

    def forget(self, tenant: str) -> None:
        """Drop a tenant's indexes."""
        with self._lock:
            self._dropped += 1
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
        """Return the up-to-date index of a shelf."""
        with self._lock:
            cached = self._cached.get(shelf)
            if cached is None:
                cached = self._cached[shelf] = self._make_empty()
            self._cached.move_to_end(shelf)
        return self._bring_up(cached, shelf)

    def find(self, shelf: Shelf) -> OwnerIndex | None:
        """Return the up-to-date index of a shelf if it is held, and if no other thread changes it right now."""
        with self._lock:
            cached = self._cached.get(shelf)
            if cached is None:
                return None
            self._cached.move_to_end(shelf)
        if cached.lock.locked():
            return None
        return self._bring_up(cached, shelf)

    def _bring_up(self, cached: _Cached, shelf: Shelf) -> OwnerIndex:
        index = self._read(shelf.tenant, lambda unit: self._check(cached, shelf, unit))
        self._evict(shelf, cached)
        return index

    def _count(self, outcome: str) -> None:
        if self._is_metered:
            METER.get().count_index(outcome)

    def load(self, shelf: IndexKey) -> None:
        """Load the index of a shelf if it fits into the cache, in a transaction for each batch of rows.

        The state is read first. So changes during the load make the next search compare, and nothing is missed.
        """
        with self._lock:
            cached, dropped = self._make_empty(), self._dropped
        index = cached.held.index
        state, as_of = self._read(shelf.tenant, lambda unit: (shelf.state(unit), unit.began))
        if state is None:
            return
        while rows := self._read(shelf.tenant, lambda unit: next(shelf.rows_after(unit, index.last_seq), ())):
            index.append(rows)
            if index.nbytes > self._max_bytes:
                return
        cached.held = _Held(index, state, as_of)
        with self._lock:
            if self._dropped != dropped or shelf in self._cached:
                return
            self._cached[shelf] = cached
        self._count("loaded")
        self._evict(shelf, cached)

    def has_room(self, nbytes: int, is_worth: Callable[[Shelf], bool]) -> bool:
        """Return True if an index of this size fits in place of the least recently used ones, all worth dropping."""
        with self._lock:
            total, others = self._total, [(shelf, each.nbytes) for shelf, each in self._cached.items()]
        for shelf, held in others:
            if total + nbytes <= self._max_bytes or not is_worth(shelf):
                break
            total -= held
        return total + nbytes <= self._max_bytes

    def _make_empty(self) -> _Cached:
        return _Cached(_Held(OwnerIndex(self._embedder, self._encoding)))

    def _check(self, cached: _Cached, shelf: Shelf, unit: Unit) -> OwnerIndex:
        """Return the current index.

        The database is queried before the lock is taken: a thread that waits for the lock, or holds it, already has its
        connection and its snapshot, so no two threads wait for each other.
        """
        held = cached.held
        if unit.began > held.as_of:
            state = shelf.state(unit)
            if held.state is None or state != held.state:
                with hold_in_time(cached.lock):
                    held = cached.held
                    if unit.began > held.as_of:
                        return self._refresh(cached, shelf, unit, state)
        self._count("hit")
        return held.index

    def _refresh(self, cached: _Cached, shelf: Shelf, unit: Unit, state: Row | None) -> OwnerIndex:
        """Bring the index up to date with the database and return it."""
        index, known, outcome = cached.held.index, cached.held.state, "extended"
        # Start over for a new owner, which may have the name of an earlier one, and for an older state of history.
        if state is None or known is None or state[0] != known[0] or state[1] < (known[1] or 0):
            # Of an owner without rows there is nothing to load.
            index, outcome = OwnerIndex(index.embedder, self._encoding), "hit" if state is None else "loaded"
        elif state[2] != known[2]:
            assert isinstance(shelf, IndexKey)  # history is never rewritten
            index, outcome = self._replace_changed(index, shelf, unit), "compared"
        if state is not None and state != known:
            # A state without a revision equals no other, so after a failure the next search continues from here.
            cached.held = _Held(index, (state[0], None, state[2]))
            for rows in shelf.rows_after(unit, index.last_seq):
                index.append(rows)
            index = shelf.trim(index)
        cached.held = _Held(index, state, unit.began)
        self._count(outcome)
        return index

    def _replace_changed(self, index: OwnerIndex, shelf: IndexKey, unit: Unit) -> OwnerIndex:
        """Return an index without the removed rows and with new versions of the edited or embedded ones."""
        changed, missing = index.compare(self._encoding.versions(shelf.versions(unit)))
        # Erasing cannot change the generation of a tenant's shelf, so changed passages are removed, not just hidden.
        index = index.without(changed) if shelf.agent is None else index.hide(changed)
        for start in range(0, len(missing), BATCH):
            index.append(shelf.rows(unit, missing[start : start + BATCH].tolist()))
        return index

    def _evict(self, shelf: Shelf, cached: _Cached) -> None:
        """Update the total with the size of this index and evict the least recently used ones above the limit."""
        nbytes = cached.held.index.nbytes
        with self._lock:
            # Evicted meanwhile, or built for another embedder.
            if self._cached.get(shelf) is not cached:
                return
            self._total += nbytes - cached.nbytes
            cached.nbytes = nbytes
            while self._total > self._max_bytes and not (self._keeps_last and next(iter(self._cached)) == shelf):
                _, oldest = self._cached.popitem(last=False)
                self._total -= oldest.nbytes
                self._count("evicted")


MAX_WAITING = 16
"""Indexes that wait to be loaded. Owners beyond it are asked again, and wait then."""

MIN_ASKED = 4
"""Questions within `HALF_LIFE` after which an owner gets an index."""

ADVANTAGE = 2
"""Factor by which it must be asked more often than an owner whose index is dropped for it, besides `MIN_ASKED`."""

HALF_LIFE = 600.0
"""Seconds after which all counts are halved."""

MAX_OWNERS = 20_000
"""Owners counted. If there are more, counts are halved early, which forgets those asked once."""


class Demand:
    """Numbers of recent questions. Owners are counted by their hashes, so no name outlives its owner."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        self._halved_at = time.monotonic()
        self._lock = threading.Lock()

    def count(self, owner: Hashable) -> None:
        """Count a question to an owner."""
        key = hash(owner)
        with self._lock:
            if len(self._asked) >= MAX_OWNERS or time.monotonic() - self._halved_at > HALF_LIFE:
                self._asked = {key: count // 2 for key, count in self._asked.items() if count > 1}
                self._halved_at = time.monotonic()
            self._asked[key] = self._asked.get(key, 0) + 1

    def is_high(self, owner: Hashable) -> bool:
        """Return True if an owner is asked often enough for an index."""
        return self._asked.get(hash(owner), 0) >= MIN_ASKED

    def is_ahead(self, owner: Hashable, other: Hashable) -> bool:
        """Return True if one owner is asked so much more often that the index of the other should make room."""
        own, others = (self._asked.get(hash(each), 0) for each in (owner, other))
        return own >= ADVANTAGE * others + MIN_ASKED


class IndexLoader:
    """Loads one index at a time on a thread."""

    def __init__(self, load: Callable[[IndexKey], None]) -> None:
        self._load = load
        self._waiting: set[IndexKey] = set()
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, "wellkept-index-loader")

    def request(self, key: IndexKey) -> None:
        """Have an index loaded soon, unless it is waiting already."""
        with self._lock:
            if key in self._waiting or len(self._waiting) >= MAX_WAITING:
                return
            self._waiting.add(key)
        # The executor may be closed.
        with suppress(RuntimeError):
            # The meter of the request counts the load, but its deadline does not end it.
            self._executor.submit(self._try_to_load, key, METER.get())

    def close(self, *, wait: bool = False) -> None:
        """Load no more, after waiting for what is left; otherwise a load in progress fails with the store."""
        self._executor.shutdown(wait=wait, cancel_futures=not wait)

    def _try_to_load(self, key: IndexKey, meter: Meter) -> None:
        METER.set(meter)
        try:
            self._load(key)
        except WellkeptError as error:
            # Searches go on without the index, and ask for it again.
            log.info("A search index was not loaded: %s", error)
        finally:
            with self._lock:
                self._waiting.discard(key)


class MemorySearch:
    """Index of the words and vectors of one engine's records."""

    def __init__(self, engine: str, read: Read, *, encoding: Encoding, max_bytes: int, keeps_last: bool) -> None:
        self._engine, self._read, self._encoding = engine, read, encoding
        self._indexes = IndexCache(read, encoding=encoding, max_bytes=max_bytes, keeps_last=keeps_last)
        self._history = IndexCache(
            read, encoding=COMPACT_ENCODING, max_bytes=HISTORY_BYTES, keeps_last=True, is_metered=False
        )
        self._embedder = NO_EMBEDDER

    def use(self, embedder: RegisteredEmbedder) -> None:
        self._embedder = embedder
        self._indexes.use(embedder)

    def forget(self, tenant: str) -> None:
        """Drop the cached data of a tenant."""
        self._indexes.forget(tenant)
        self._history.forget(tenant)

    def clear(self) -> None:
        """Drop all cached data."""
        self._indexes.clear()
        self._history.clear()

    def encoded(self, terms: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Sequence[Mapping[str, Any]]:
        """Encode the index columns of each record for the statements `index_…` and `set_…_vector`. Raises: Invalid."""
        self._embedder.check(vectors)
        return [
            {**self._encoding.encode(words, vector), "embedder_id": None if vector is None else self._embedder.id}
            for words, vector in zip(terms, vectors, strict=True)
        ]

    def has_words(self, stored: Any, terms: Sequence[str]) -> bool:
        """Return True if an entry, as the fragment `stored_words` reads it, holds exactly these words."""
        return self._count_words(stored) == self._count_words(self._encoding.encode(terms, None)["terms"])

    def holds_words(self, stored: Any, terms: Sequence[str]) -> bool:
        """Return True if such an entry holds at least these words."""
        return {*self._count_words(self._encoding.encode(terms, None)["terms"])} <= {*self._count_words(stored)}

    def _count_words(self, stored: Any) -> Mapping[Any, int]:
        return self._encoding.counts(stored)

    def search_history(self, key: HistoryKey, terms: Sequence[str], limit: int) -> Sequence[Match]:
        """Find the entries that share words; the score is the share of them that an entry holds, by their rarity."""
        return self._history.current(key).search_all(terms, limit) if terms else ()

    def search_memories(self, owner: Owner, query: IndexQuery, limit: int) -> Sequence[Match]:
        return merge_matches([self._search_part(key, query, limit) for key in self._keys(owner)], limit)

    def nearest_memories(self, owner: Owner, query: IndexQuery, limit: int) -> Sequence[Match]:
        return merge_matches([self._search_nearest(key, query, limit) for key in self._keys(owner)], limit)

    def weigh_memories(self, owner: Owner, query: IndexQuery) -> Evidence:
        own, *others = [self._weigh_part(key, query) for key in self._keys(owner)]
        for other in others:
            own = other if not len(own.seqs) else own.with_more(other) if len(other.seqs) else own
        return own

    def _load_field(self, key: IndexKey, field: Comparison, seqs: Sequence[int]) -> Iterator[Row]:
        """Yield the number, the version in the index and the value of a field of these memories."""
        select = compile_field(field, self._engine)
        for start in range(0, len(seqs), BATCH):
            numbers = list(seqs[start : start + BATCH])
            yield from self._read(key.tenant, partial(key.fields, seqs=numbers, select=select))

    def _search_part(self, key: IndexKey, query: IndexQuery, limit: int) -> Sequence[Match]:
        return self._indexes.current(key).search(query, limit)

    def _search_nearest(self, key: IndexKey, query: IndexQuery, limit: int) -> Sequence[Match]:
        return self._indexes.current(key).nearest(query, limit)

    def _weigh_part(self, key: IndexKey, query: IndexQuery) -> Evidence:
        return self._weigh_index(self._indexes.current(key), key, query)

    def _weigh_index(self, index: OwnerIndex, key: IndexKey, query: IndexQuery) -> Evidence:
        return index.evidence(query, partial(self._load_field, key))

    def _keys(self, owner: Owner) -> Sequence[IndexKey]:
        return [*map(self._find_key, owner.parts)]

    def _find_key(self, owner: Owner) -> IndexKey:
        """Return the key of the index of an agent, of one of its users, or of its records of no user, which all users
        share. An agent without users has one, whether or not the search names nobody.

        A row of a user that is added at this moment is in that index, but the statement that reads it leaves it out.
        """
        agent = {"tenant": owner.tenant, "agent": owner.agent}
        is_alone = owner.user == NO_USER and not self._read(owner.tenant, lambda unit: unit.one("any_user", **agent))
        return IndexKey(owner.tenant, owner.agent, None if is_alone else owner.user)

    def weigh_chunks(self, tenant: str, query: IndexQuery) -> PassageEvidence:
        return self._weigh_shelf(self._indexes.current(IndexKey(tenant)), tenant, query)

    def _weigh_shelf(self, index: OwnerIndex, tenant: str, query: IndexQuery) -> PassageEvidence:
        found = index.evidence(replace(query, where=None))
        if query.where is not None:
            clause = compile_filter(query.where, self._engine)
            rows = self._read(tenant, lambda unit: unit.all("chunks_where", clause, tenant=tenant))
            found = replace(found, allowed=np.isin(found.seqs, [number for (number,) in rows]))
        return PassageEvidence.of_shelf(found)


def merge_matches(matches: Sequence[Sequence[Match]], limit: int) -> Sequence[Match]:
    """Return the best matches of several indexes, newest first among equals."""
    return merge_parts(matches, limit, lambda match: (match.score, match.seq))
