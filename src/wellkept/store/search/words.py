"""Word search in a tenant's history on any engine: an inverted list in memory, extended before a search if necessary.

History is append-only, so each list remembers its last number and reads only what follows it. Recording an event, which
every change of a memory does, writes nothing for the search.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from wellkept.deadline import hold_in_time
from wellkept.model import Match, Role
from wellkept.store.engine import Engine, RegisteredEmbedder, Row, Unit, Units
from wellkept.store.search import encoding, index

MAX_BYTES = 64 * 1024 * 1024
"""Memory limit for all lists; the least recently used are evicted."""

SPARE = 1.25
"""A list may grow to this multiple of the searched range before its oldest part is dropped."""

BATCH = 10_000
"""Rows read at once: a read that runs out of time keeps all batches before it."""

NO_VECTORS = RegisteredEmbedder(0, "", 0)

Read = Callable[[str, Callable[[Unit], None]], None]


@dataclass(frozen=True, slots=True)
class HistoryShelf:
    """One kind of history: readers of its last number and of the rows (number, encoded words) after a number."""

    name: str
    last: Callable[[Unit], int]
    after: Callable[[Unit, int, int], Sequence[tuple[int, bytes]]]  # takes the number and a limit
    max_searched: int


@dataclass(slots=True)
class _Held:
    """Cached list of one tenant and shelf."""

    words: index.OwnerIndex = field(default_factory=lambda: index.OwnerIndex(NO_VECTORS))
    read_at: float = -inf  # time at which the last number read was known
    nbytes: int = 0  # size included in the total
    is_evicted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class WordLists:
    """Cache of inverted lists, one per tenant and shelf."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        # Bytes of all lists, updated incrementally: a search must not pay for measuring the lists of others.
        self._total = 0

    def search(self, tenant: str, shelf: HistoryShelf, terms: Sequence[str], *, limit: int) -> list[Match]:
        """Search a shelf; return the best matches first, scored 0 to 1 by how much of the query a text covers."""
        if not terms:
            return []
        return self._refresh(tenant, shelf).search_all(terms, limit)

    def forget(self, tenant: str) -> None:
        """Drop a tenant's lists; the next search rebuilds them."""
        with self._lock:
            for key in [key for key in self._held if key[0] == tenant]:
                self._drop(self._held.pop(key))

    def _refresh(self, tenant: str, shelf: HistoryShelf) -> index.OwnerIndex:
        with self._lock:
            held = self._held.get((tenant, shelf.name))
            if held is None:
                held = self._held[tenant, shelf.name] = _Held()
            self._held.move_to_end((tenant, shelf.name))
        words: list[index.OwnerIndex] = []
        self._read(tenant, lambda unit: words.append(_current_words(held, shelf, unit)))
        self._evict(held)
        return words[0]

    def _evict(self, held: _Held) -> None:
        """Update the total with the size of this list and evict the least recently used lists above the limit."""
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


class WordSearchRows(Units):
    """Base of the rows of history, which are searched by words."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._words = WordLists(engine.read)

    def _search_words(self, tenant: str, shelf: HistoryShelf, terms: Sequence[str], *, limit: int) -> list[Match]:
        self._check_outside(tenant)
        return self._words.search(tenant, shelf, terms, limit=limit)


def encode_words(terms: Sequence[str]) -> bytes:
    """Encode a text's words for an inverted list."""
    return encoding.encode_terms(terms)


def has_same_words(stored: bytes, terms: Sequence[str]) -> bool:
    """Return True if a step's entry holds exactly these words."""
    return encoding.has_same_terms(stored, terms)


def _current_words(held: _Held, shelf: HistoryShelf, unit: Unit) -> index.OwnerIndex:
    """Return the current list.

    The database is queried before the lock is taken: a thread that waits for the lock, or holds it, already has its
    connection and its snapshot, so no two threads wait for each other.
    """
    last, words = shelf.last(unit), held.words
    if last == words.last_seq:
        return words
    known_at = monotonic()
    with hold_in_time(held.lock):
        _extend(held, shelf, unit, last)
        held.read_at = max(held.read_at, known_at)
        return held.words


def _extend(held: _Held, shelf: HistoryShelf, unit: Unit, last: int) -> None:
    if last < held.words.last_seq:
        # A snapshot older than the list: it has no rows for later matches, so the caller drops them.
        if unit.began <= held.read_at:
            return
        # Otherwise a lower number means another history under the same name, such as a restored one.
        held.words = index.OwnerIndex(NO_VECTORS)
    oldest = last - shelf.max_searched
    while rows := shelf.after(unit, max(held.words.last_seq, oldest), BATCH):
        held.words.append([_index_row(*each) for each in rows])
        if len(rows) < BATCH:
            break
    if held.words.count > SPARE * shelf.max_searched:
        seqs = held.words.seqs
        held.words = held.words.without(seqs[seqs <= oldest])


def _index_row(number: int, terms: bytes) -> Row:
    return (number, 1, "", None, terms, None, None, None, Role.USER.value, 0)
