"""Finding a tenant's history by its words, on any engine: an inverted list in memory, extended before every search.

What was done is only ever added to, so a number says how far a list has come, and what lies above it is read. Nothing
is written for this when an event is recorded, which every change of a memory is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from recollect.deadline import hold_in_time
from recollect.lazy import LazyModule
from recollect.model import Match, Role
from recollect.store.engine import Engine, Registered, Row, Unit
from recollect.store.units import Units

if TYPE_CHECKING:
    from recollect.store.search import encoding, index
else:
    encoding = LazyModule("recollect.store.search.encoding")
    index = LazyModule("recollect.store.search.index")

MAX_BYTES = 64 * 1024 * 1024
"""What all lists together may take; the least recently used go."""

SPARE = 1.25
"""A list grows to this many times what is searched before its oldest part is dropped."""

BATCH = 10_000
"""Rows read at once: a read that runs out of time keeps all batches before it."""

NO_VECTORS = Registered(0, "", 0)

Read = Callable[[str, Callable[[Unit], None]], None]


@dataclass(frozen=True, slots=True)
class Shelf:
    """One kind of history: how far it has come, and what came after a number, as (number, encoded words)."""

    name: str
    last: Callable[[Unit], int]
    after: Callable[[Unit, int, int], Sequence[tuple[int, bytes]]]  # at most so many
    max_searched: int


@dataclass(slots=True)
class _Held:
    words: index.OwnerIndex = field(default_factory=lambda: index.OwnerIndex(NO_VECTORS))
    read_at: float = -inf  # when the number was known up to which it was read
    nbytes: int = 0  # as last counted into the total
    is_evicted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class WordLists:
    """The lists in use, one for each tenant and shelf."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._total = 0  # bytes of all lists: counted as they change, so that nobody pays for others' lists

    def search(self, tenant: str, shelf: Shelf, terms: Sequence[str], *, limit: int) -> list[Match]:
        """Best first; the score is how much of the question a text holds, 0 to 1."""
        if not terms:
            return []
        return self._current(tenant, shelf).covered(terms, limit)

    def forget(self, tenant: str) -> None:
        """Drop a tenant's lists; the next search makes them anew."""
        with self._lock:
            for key in [key for key in self._held if key[0] == tenant]:
                self._drop(self._held.pop(key))

    def _current(self, tenant: str, shelf: Shelf) -> index.OwnerIndex:
        with self._lock:
            held = self._held.get((tenant, shelf.name))
            if held is None:
                held = self._held[tenant, shelf.name] = _Held()
            self._held.move_to_end((tenant, shelf.name))
        words: list[index.OwnerIndex] = []
        self._read(tenant, lambda unit: words.append(_current_words(held, shelf, unit)))
        self._make_room(held)
        return words[0]

    def _make_room(self, held: _Held) -> None:
        """Count what the list takes now, and let go of those unused for longest if all take too much."""
        nbytes = held.words.nbytes
        with self._lock:
            if held.is_evicted:
                return
            self._total += nbytes - held.nbytes
            held.nbytes = nbytes
            while self._total > MAX_BYTES and len(self._held) > 1:
                self._drop(self._held.popitem(last=False)[1])

    def _drop(self, held: _Held) -> None:
        held.is_evicted = True
        self._total -= held.nbytes


class SearchedByWords(Units):
    """What rows of history share: the lists they are found by."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._words = WordLists(engine.read)

    def _found_by_words(self, tenant: str, shelf: Shelf, terms: Sequence[str], *, limit: int) -> list[Match]:
        self._check_outside(tenant)
        return self._words.search(tenant, shelf, terms, limit=limit)


def encoded(terms: Sequence[str]) -> bytes:
    """A text's words as a list takes them."""
    return encoding.encode_terms(terms)


def is_same(stored: bytes, terms: Sequence[str]) -> bool:
    """Return True if a step's entry holds exactly these words."""
    return encoding.is_same_terms(stored, terms)


def _current_words(held: _Held, shelf: Shelf, unit: Unit) -> index.OwnerIndex:
    """Return the list as of now.

    The database is asked before the lock is taken: so whoever waits for the lock, or holds it, has its connection and
    its snapshot already, and no two threads wait for each other.
    """
    last, words = shelf.last(unit), held.words
    if last == words.last_seq:
        return words
    known_at = monotonic()
    with hold_in_time(held.lock):
        _extend(held, shelf, unit, last)
        held.read_at = max(held.read_at, known_at)
        return held.words


def _extend(held: _Held, shelf: Shelf, unit: Unit, last: int) -> None:
    if last < held.words.last_seq:
        # A snapshot from before the list was last read: what came later does no harm, its rows are not found.
        if unit.began <= held.read_at:
            return
        # Another history under the same name.
        held.words = index.OwnerIndex(NO_VECTORS)
    oldest = last - shelf.max_searched
    while rows := shelf.after(unit, max(held.words.last_seq, oldest), BATCH):
        held.words.append([_row(*each) for each in rows])
        if len(rows) < BATCH:
            break
    if held.words.count > SPARE * shelf.max_searched:
        seqs = held.words.seqs
        held.words = held.words.without(seqs[seqs <= oldest])


def _row(number: int, terms: bytes) -> Row:
    return (number, 1, "", None, terms, None, None, None, Role.USER.value, 0)
