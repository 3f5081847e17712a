"""Search index of one owner in memory: a matrix of vectors and an inverted list of words.

The database keeps each record's index entry in compact columns. Here they become NumPy arrays, which answer a search
in well under a millisecond for ten thousand records, regardless of the size of the database.

Rows are parallel columns; vectors take one byte per dimension (`store.search.encoding`). The inverted list says in
which rows each word occurs, and how often. It is a few sorted segments. A segment has the distinct word hashes, and for
each of them a run of entries: a row (24 bits) and a count (8 bits) in one number. New rows become a segment, which is
merged with those before it as long as they are not much larger, nor too large. So adding a row never sorts the whole
list, and a search has few segments.

A filter names few fields, but with other values each time. So the values of a field are read once, when a filter first
names it, and compared as an array. Later only the rows that were added to the index are read. A row never changes: an
edit hides it and adds another one. Rows keep their places as long as the index is not compacted.
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wellkept.language.text import FIXED
from wellkept.memory.rules_filters import (
    EQUAL,
    EXISTS,
    JSON_FIELDS,
    ORDERINGS,
    STATE,
    And,
    Comparison,
    Condition,
    Not,
    Or,
    Scalar,
    list_json_values,
)
from wellkept.model import Kind, Match, State
from wellkept.recall.rules_features import BM25_B, BM25_K1, SPEAKERS, Evidence, Frame, number_conversations
from wellkept.store.engine import IndexQuery, RegisteredEmbedder, Row
from wellkept.store.search.encoding import COMPACT_ENCODING, Bytes, Encoding, Floats, Numbers, multiply, word_key
from wellkept.store.tables.rows import TAG_BORDER, moment

V = TypeVar("V", bound=Hashable)
N = TypeVar("N", np.int8, np.int32, np.float64)

MIN_SEGMENT = 4096
"""Entries below which a segment is merged with the next one."""

GROWTH = 4
"""A segment is merged with the next one unless it has this many times as many entries."""

MAX_MERGED = 1 << 18
"""Entries above which segments stay apart: a large list is loaded in parts, and merging them takes longer than a search
in each of them."""

Packed = NDArray[np.uint64]
Keys = NDArray[np.uint32]
Entries = NDArray[np.uint32]

Occurrences = tuple[NDArray[np.int64], Floats]
"""Places of one word, and its count at each of them."""


@dataclass(frozen=True, slots=True)
class PostingSegment:
    """Sorted part of the list."""

    keys: Keys  # distinct word hashes, ascending
    starts: NDArray[np.uint32]  # first entry of each word and, at the end, the number of entries
    entries: Entries  # row << 8 | count, ascending within a word

    @classmethod
    def from_packed(cls, packed: Packed) -> PostingSegment:
        """Build a segment of occurrences: word hash (32 bits), row (24) and count (8) in one number each."""
        # What is merged consists of sorted runs, which only the stable sort makes use of.
        packed = np.sort(packed, kind="stable")
        words = (packed >> np.uint64(32)).astype(np.uint32)
        begins = np.flatnonzero(np.r_[True, words[1:] != words[:-1]]) if len(words) else np.empty(0, np.int64)
        return cls(words[begins], np.append(begins, len(words)).astype(np.uint32), packed.astype(np.uint32))

    def unpack(self) -> Packed:
        """Return the occurrences from which the segment was built."""
        words = np.repeat(self.keys.astype(np.uint64), np.diff(self.starts))
        return words << np.uint64(32) | self.entries

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.starts.nbytes + self.entries.nbytes)

    def find(self, keys: Keys) -> list[Entries]:
        """Return the entries of each word."""
        if not len(self.keys):
            # Texts without words make a segment without any: "👍", "...", "the".
            return [NO_ENTRIES] * len(keys)
        at = self.keys.searchsorted(keys)
        # Behind the last word there is none, but `take` needs a place.
        is_known = self.keys.take(at, mode="clip") == keys
        first, last = self.starts.take(at), self.starts.take(at + is_known)
        return [self.entries[low:high] for low, high in zip(first.tolist(), last.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Words:
    """Inverted list."""

    segments: tuple[PostingSegment, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.segments)

    def extend(self, packed: Packed) -> Words:
        """Return a copy with more occurrences."""
        if not len(packed):
            return self
        kept, merged, total = list(self.segments), [packed], len(packed)
        while (
            kept and total + (last := len(kept[-1].entries)) <= MAX_MERGED and last < max(MIN_SEGMENT, GROWTH * total)
        ):
            merged.append(kept.pop().unpack())
            total += len(merged[-1])
        return Words((*kept, PostingSegment.from_packed(np.concatenate(merged))))

    def keep_rows(self, new_numbers: NDArray[np.int64]) -> Words:
        """Return a list of the rows whose new number is not negative, under these numbers."""
        packed = [each.unpack() for each in self.segments]
        if not packed:
            return self
        found = np.concatenate(packed)
        numbers = new_numbers[(found >> np.uint64(8)).astype(np.int64) & 0xFFFFFF]
        found, numbers = found[numbers >= 0], numbers[numbers >= 0]
        outer = found & np.uint64(0xFFFFFFFF000000FF)
        return Words((PostingSegment.from_packed(outer | numbers.astype(np.uint64) << np.uint64(8)),))

    def find(self, keys: Sequence[int]) -> list[Entries]:
        """Return the entries of each word, in the order of the rows within a segment."""
        wanted = np.array(keys, np.uint32)
        found = [each.find(wanted) for each in self.segments]
        if len(found) == 1:
            return found[0]
        return [np.concatenate(of_word) for of_word in zip(*found, strict=True)] if found else [NO_ENTRIES] * len(keys)

    def occurrences(self, keys: Sequence[int], places: NDArray[np.int32]) -> list[Occurrences]:
        """Return the places and counts of each word. `places` maps rows to places; -1 omits a row."""
        found = self.find(keys)
        # All words at once: most of the time would go to calls on short arrays.
        entries = np.concatenate(found) if found else NO_ENTRIES
        ends = np.cumsum([len(each) for each in found]).tolist()
        rows, counts = row_numbers(entries), (entries & np.uint32(0xFF)).astype(np.float32)
        # Rows may have been added since `places` was made.
        at = np.where(rows < len(places), places.take(rows, mode="clip"), -1)
        split = [(at[low:high], counts[low:high]) for low, high in zip([0, *ends], ends, strict=False)]
        return [(each[each >= 0], count[each >= 0]) for each, count in split]

    def mark_bits(self, keys: Sequence[int], count: int) -> NDArray[np.uint8]:
        """Return a number for each of `count` rows, with a bit set for each of the words that occurs there."""
        bits = np.zeros(count, np.uint8)
        for bit, entries in enumerate(self.find(keys)):
            rows = row_numbers(entries)
            bits[rows[rows < count]] |= np.uint8(1 << bit)
        return bits


NO_ENTRIES: Entries = np.empty(0, np.uint32)


def row_numbers(entries: Entries) -> NDArray[np.int64]:
    return (entries >> np.uint32(8)).astype(np.int64)


def arrange_records(
    *,
    seqs: Numbers,
    sessions: Numbers,
    speakers: NDArray[np.int8],
    since: NDArray[Any],
    lengths: Floats,
    traits: NDArray[np.uint8],
) -> tuple[Evidence, Numbers]:
    """Return the evidence without words and meaning, grouped by conversation, and the order that does so."""
    conversations = number_conversations(sessions, seqs=seqs, speakers=speakers, since=since.astype(np.float64))
    order: Numbers = np.lexsort((seqs, conversations))
    conversations, lengths = conversations[order], lengths[order]
    frame = Frame.of(conversations, lengths) if len(order) else None
    evidence = Evidence(
        seqs=seqs[order],
        conversations=conversations if frame is None else frame.talk,
        lengths=lengths,
        since=since[order],
        speakers=speakers[order],
        turns=((sessions != 0) & (speakers != 0))[order],
        traits=traits[order],
        cosines=None,
        occurrences=(),
        frame=frame,
    )
    return evidence, order


@dataclass(frozen=True, slots=True)
class IndexView:
    """Query-independent part of the evidence: rows grouped by conversation and in their order."""

    rows: IndexRows
    allowed: NDArray[np.bool_]
    kept: Numbers  # row numbers in that order
    places: NDArray[np.int32]  # place of each row in that order; -1 if filtered out
    is_embedded: bool
    evidence: Evidence

    @classmethod
    def build(cls, rows: IndexRows, words: Words, allowed: NDArray[np.bool_]) -> IndexView:
        found = np.flatnonzero(allowed)
        evidence, order = arrange_records(
            seqs=rows.seqs[found],
            # Conversations of rows without a session have negative numbers.
            sessions=rows.sessions[found].astype(np.int64) & 0xFFFFFFFF,
            speakers=rows.speakers[found],
            since=rows.since[found],
            lengths=rows.lengths[found],
            traits=words.mark_bits([word_key(each) for each in FIXED], rows.count)[found],
        )
        kept, places = found[order], np.full(rows.count, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        return cls(rows, allowed, kept, places, bool(rows.embedded[: rows.count].all()), evidence)


HIDDEN_SHARE = 0.05
"""Share of hidden rows above which an index is compacted."""

MAX_VIEWS = 4
"""Number of group selections for which an index caches the data that does not depend on the query."""


EMPTY_BYTES = 4096
"""Approximate size of an empty index, which dominates when there are many small owners."""

VIEW_BYTES = 60
"""Approximate size of a row in a view."""


class OwnerIndex:
    """Index of one owner, or of one tenant's shared shelf.

    Only one thread at a time may `append`. Searches may run at any time, on the state at their start.
    """

    def __init__(self, embedder: RegisteredEmbedder, encoding: Encoding = COMPACT_ENCODING) -> None:
        self.embedder = embedder
        self.encoding = encoding
        self.last_seq = 0  # highest number ever indexed; rows above it are new
        self._rows = IndexRows.empty(embedder.dimensions)
        self._words = Words()
        self._views: Mapping[frozenset[str], IndexView] = {}
        self._columns = FieldColumns()

    @property
    def count(self) -> int:
        return self._rows.count

    @property
    def nbytes(self) -> int:
        derived = max(1, len(self._views)) * VIEW_BYTES * self._rows.count
        derived += sum(each.nbytes for each in self._columns.held.values())
        return EMPTY_BYTES + self._rows.nbytes + self._words.nbytes + derived

    @property
    def seqs(self) -> Numbers:
        """Numbers of the records that are not hidden, in the order of insertion."""
        return self._rows.seqs[: self._rows.count][self._rows.is_kept]

    def compare(self, stored: Numbers) -> tuple[Numbers, Numbers]:
        """Compare with the stored rows (seq, version, embedder) up to `last_seq`. Return the numbers that are indexed
        but changed or no longer stored, and those that are stored but not indexed in that version."""
        stored = stored[stored[:, 0] <= self.last_seq]
        stored = stored[np.argsort(stored[:, 0])]
        rows, seqs, kept = self._rows, self.seqs, np.flatnonzero(self._rows.is_kept)
        at = np.searchsorted(stored[:, 0], seqs)
        is_same = at < len(stored)
        number, version, embedder_id = stored[at[is_same]].T
        is_same[is_same] = (
            (number == seqs[is_same])
            & (version == rows.versions[kept[is_same]])
            & ((embedder_id == self.embedder.id) == rows.embedded[kept[is_same]])
        )
        return seqs[~is_same], np.setdiff1d(stored[:, 0], seqs[is_same], assume_unique=True)

    def append(self, stored: Sequence[Row]) -> None:
        """Add new rows (seq, version, group, end, terms, embedder_id, vector, session_id, role, since). An end is None,
        a time or its seconds; terms and vector are in this index's encoding."""
        if not stored:
            return
        seqs, versions, groups, expiries, entries, embedder_ids, vectors, sessions, roles, since = zip(
            *stored, strict=True
        )
        first = self._rows.count
        words, per_row = self.encoding.words(entries)
        numbers = np.repeat(np.arange(len(stored)), per_row)
        packed = words | ((numbers + first).astype(np.uint64) << np.uint64(8))
        lengths = np.bincount(numbers, weights=words & np.uint64(0xFF), minlength=len(stored))
        embedded, matrix, scales = self._read_vectors(embedder_ids, vectors)
        # The words first, because a search reads them last.
        self._words = self._words.extend(packed)
        self._rows = self._rows.extend(
            seqs=np.array(seqs, np.int64),
            versions=np.array(versions, np.int64),
            groups=groups,
            expiries=_convert(expiries, _seconds, np.float64),
            lengths=lengths.astype(np.float32),
            embedded=embedded,
            matrix=matrix,
            scales=scales,
            sessions=_convert(sessions, _session_number, np.int32),
            speakers=_convert(list(zip(groups, roles, strict=True)), _speaker_number, np.int8),
            since=np.array(since, np.int64),
        )
        self.last_seq = max(self.last_seq, *seqs)

    def _read_vectors(
        self, embedder_ids: Sequence[int | None], vectors: Sequence[bytes | None]
    ) -> tuple[NDArray[np.bool_], Bytes, Floats]:
        """Return a mask of the rows with a vector of this index's embedder, and the bytes and scales of all rows."""
        own, total = self.embedder.id, len(vectors)
        entries = list(zip(embedder_ids, vectors, strict=True))
        blobs = [blob for id, blob in entries if blob is not None and id == own]
        embedded = np.array([blob is not None and id == own for id, blob in entries])
        matrix, scales = np.zeros((total, self.embedder.dimensions), np.int8), np.zeros(total, np.float32)
        if len(blobs) == total:
            matrix[:], scales[:] = self.encoding.vectors(blobs, self.embedder.dimensions)
        elif blobs:
            matrix[embedded], scales[embedded] = self.encoding.vectors(blobs, self.embedder.dimensions)
        return embedded, matrix, scales

    def hide(self, seqs: Numbers) -> OwnerIndex:
        """Return a copy that hides these records; it is compacted, which copies all rows, only above `HIDDEN_SHARE`."""
        rows = self._rows
        stays = rows.is_kept & ~np.isin(rows.seqs[: rows.count], seqs)
        if np.count_nonzero(stays) < (1 - HIDDEN_SHARE) * rows.count:
            return self._compact(stays)
        kept = self._copy_with(replace(rows, expiries=np.where(stays, rows.expiries[: rows.count], HIDDEN)))
        kept._words, kept._columns = self._words, self._columns
        return kept

    def without(self, seqs: Numbers) -> OwnerIndex:
        """Return a copy without these records."""
        rows = self._rows
        return self._compact(rows.is_kept & ~np.isin(rows.seqs[: rows.count], seqs))

    def _compact(self, stays: NDArray[np.bool_]) -> OwnerIndex:
        kept = self._copy_with(self._rows.keep_only(stays))
        kept._words = self._words.keep_rows(np.where(stays, np.cumsum(stays) - 1, -1))
        return kept

    def _copy_with(self, rows: IndexRows) -> OwnerIndex:
        other = OwnerIndex(self.embedder, self.encoding)
        other.last_seq, other._rows = self.last_seq, rows
        return other

    def search(self, query: IndexQuery, limit: int) -> list[Match]:
        """Rank the rows that contain any of the words by BM25, with the statistics of the rows that pass the filter."""
        # Read the rows first: words of rows that are appended in between are ignored.
        rows, words = self._rows, self._words
        return _search_rows(rows, _find_words(words, query.terms), query, limit) if rows.count else []

    def search_all(self, terms: Sequence[str], limit: int) -> list[Match]:
        """Rank all rows by BM25. Scores are relative to an average-length text with every word once, and at most 1."""
        rows, words = self._rows, self._words
        holding, total = _find_words(words, terms), rows.count
        if not any(map(len, holding)):
            return []
        full = float(sum(np.log1p((total - min(len(each), total) + 0.5) / (len(each) + 0.5)) for each in holding))
        found = _search_rows(rows, holding, IndexQuery(), limit)
        return [Match(match.seq, min(1.0, match.score / full)) for match in found]

    def nearest(self, query: IndexQuery, limit: int) -> list[Match]:
        """Rank the rows by their cosine to the vector."""
        rows = self._rows
        if not rows.count or query.vector is None:
            return []
        scores = rows.multiply(query.vector)
        scores[~(rows.match_filter(query) & rows.embedded[: rows.count])] = -np.inf
        return rows.best(scores, limit, above=-np.inf)

    def evidence(self, query: IndexQuery, load: LoadField | None = None) -> Evidence:
        """Collect the cosines and word occurrences of the rows that count for `recall.rules_features`.

        `load` reads the fields that the condition of the query names.
        """
        terms, vector, where = query.terms, query.vector, query.where
        rows, words = self._rows, self._words
        if not rows.count:
            nowhere = (np.zeros(0, np.int64), np.zeros(0, np.float32))
            cosines = None if vector is None else nowhere[1]
            allowed = None if where is None else np.zeros(0, np.bool_)
            return replace(Evidence.empty(), occurrences=[nowhere] * len(terms), cosines=cosines, allowed=allowed)
        view = self._view(rows, words, query)
        keys = [word_key(term) for term in terms]
        occurrences = words.occurrences(keys, view.places)
        allowed = None
        if where is not None and load is not None:
            allowed = self._columns.match(where, rows, load)[view.kept]
        cosines = None
        if vector is not None:
            cosines = rows.multiply(vector)
            if not view.is_embedded:
                cosines[~rows.embedded[: rows.count]] = np.nan
            cosines = cosines[view.kept]
        return view.evidence.with_question(occurrences, cosines, allowed)

    def _view(self, rows: IndexRows, words: Words, query: IndexQuery) -> IndexView:
        """Return the view of the filtered rows, cached until the selection for the same groups changes."""
        allowed, groups = rows.match_filter(query), frozenset(query.groups)
        view = self._views.get(groups)
        if view is None or view.rows is not rows or not np.array_equal(view.allowed, allowed):
            view = IndexView.build(rows, words, allowed)
            self._views = {**dict(list(self._views.items())[-MAX_VIEWS + 1 :]), groups: view}
        return view


def _find_words(words: Words, terms: Sequence[str]) -> list[Entries]:
    """Return the occurrences of each word."""
    return words.find(list({word_key(term) for term in terms}))


def _search_rows(rows: IndexRows, holding: Sequence[Entries], query: IndexQuery, limit: int) -> list[Match]:
    allowed = rows.match_filter(query)
    total = int(np.count_nonzero(allowed))
    if not total:
        return []
    lengths = rows.lengths[: rows.count]
    average = max(float((lengths if total == rows.count else lengths[allowed]).mean()), 1e-9)
    scores = np.zeros(rows.count, np.float32)
    for found in holding:
        numbers = row_numbers(found)
        in_view = numbers < rows.count
        numbers = numbers[in_view]
        counts = (found[in_view] & np.uint32(0xFF)).astype(np.float32) * allowed[numbers]
        holders = int(np.count_nonzero(counts))
        # BM25: inverse document frequency times saturated term frequency, normalised by length.
        weight = np.log1p((total - holders + 0.5) / (holders + 0.5))
        norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths[numbers] / average)
        scores[numbers] += weight * counts * (BM25_K1 + 1) / (counts + norms)
    return rows.best(scores, limit, above=0.0)


def _convert(values: Sequence[V], convert: Callable[[V], float], dtype: type[N]) -> NDArray[N]:
    """Return the numbers of values, of which many are equal: each distinct one is converted once."""
    numbers = {each: convert(each) for each in set(values)}
    return np.fromiter(map(numbers.__getitem__, values), dtype, len(values))


def _session_number(session_id: str | None) -> int:
    """Return a number of 32 bits for a row's session; 0 is reserved for rows without one."""
    number = 0 if session_id is None else word_key(session_id) or 1
    return number if number < 1 << 31 else number - (1 << 32)


def _speaker_number(kind_and_role: tuple[str, str]) -> int:
    kind, role = kind_and_role
    return _SPEAKERS[role] if kind == Kind.EPISODE else 0


_SPEAKERS = {role.value: number for number, role in enumerate(SPEAKERS) if role is not None}


def _seconds(expiry: str | float | None) -> float:
    if expiry is None:
        return NEVER
    return moment(expiry).timestamp() if isinstance(expiry, str) else expiry


NEVER = np.inf
HIDDEN = -np.inf
"""Time before all others. A row that expires then is hidden; a search at that time finds all other rows."""


@dataclass(frozen=True, slots=True)
class IndexRows:
    """Columns with spare capacity: only the first `count` entries are valid, and those never change."""

    count: int
    group_names: tuple[str, ...]
    seqs: Numbers
    versions: Numbers
    groups: NDArray[np.int16]  # indexes into group_names
    expiries: NDArray[np.float64]
    lengths: Floats
    embedded: NDArray[np.bool_]
    matrix: NDArray[np.int8]  # vectors; see `store.search.encoding`
    scales: Floats
    sessions: NDArray[np.int32]  # hash of the session; 0 if none
    speakers: NDArray[np.int8]
    since: Numbers

    @classmethod
    def empty(cls, dimensions: int) -> IndexRows:
        matrix = np.empty((0, dimensions), np.int8)
        empty = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}
        return cls(0, (), **{**empty, "matrix": matrix})

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in _COLUMNS)

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not hidden."""
        return self.expiries[: self.count] > HIDDEN

    def extend(self, *, groups: Sequence[str], **new: NDArray[np.generic]) -> IndexRows:
        """Return a copy with more rows, written into spare capacity if possible. The old value does not change."""
        names = tuple(dict.fromkeys([*self.group_names, *groups]))
        number_of = {name: number for number, name in enumerate(names)}
        added = {"groups": np.fromiter(map(number_of.__getitem__, groups), np.int16, len(groups)), **new}
        grown = {name: _append(getattr(self, name), self.count, values) for name, values in added.items()}
        return IndexRows(self.count + len(groups), names, **grown)  # type: ignore[arg-type]

    def keep_only(self, stays: NDArray[np.bool_]) -> IndexRows:
        kept = {name: getattr(self, name)[: self.count][stays] for name in _COLUMNS}
        return IndexRows(int(np.count_nonzero(stays)), self.group_names, **kept)

    def match_filter(self, query: IndexQuery) -> NDArray[np.bool_]:
        """Return a mask of the rows that pass the filter."""
        allowed: NDArray[np.bool_] = self.expiries[: self.count] > query.now
        if query.until is not None:
            allowed &= self.since[: self.count] <= query.until
        if query.groups:
            numbers = [number for number, name in enumerate(self.group_names) if name in query.groups]
            if len(numbers) < len(self.group_names):
                allowed &= np.isin(self.groups[: self.count], numbers)
        return allowed

    def multiply(self, vector: Floats) -> Floats:
        """Return the product of each row's vector with `vector`; 0 for a row without one."""
        return multiply(self.matrix[: self.count], self.scales[: self.count], vector)

    def best(self, scores: Floats, limit: int, *, above: float) -> list[Match]:
        """Return the `limit` best rows, newest first among equals."""
        candidates = np.flatnonzero(scores > above)
        if limit < len(candidates):
            edge = np.partition(scores[candidates], -limit)[-limit]
            candidates = candidates[scores[candidates] >= edge]
        order = candidates[np.lexsort((-self.seqs[candidates], -scores[candidates]))[:limit]]
        return list(map(Match, self.seqs[order].tolist(), scores[order].tolist()))


_COLUMNS: Mapping[str, Any] = {
    "seqs": np.int64,
    "versions": np.int64,
    "groups": np.int16,
    "expiries": np.float64,
    "lengths": np.float32,
    "embedded": np.bool_,
    "matrix": np.int8,
    "scales": np.float32,
    "sessions": np.int32,
    "speakers": np.int8,
    "since": np.int64,
}


def _append(column: NDArray[np.generic], count: int, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Write `values` after the first `count` entries of `column`, in place or in a copy with a quarter to spare."""
    if not len(column):
        return values
    needed = count + len(values)
    if needed > len(column):
        larger = np.empty((needed + needed // 4, *column.shape[1:]), column.dtype)
        larger[:count] = column[:count]
        column = larger
    column[count:needed] = values
    return column


MAX_COLUMNS = 32
"""Columns that an index keeps, more than one filter can name; the least recently read are dropped."""

MAX_COLUMN_BYTES = 32 * 1024 * 1024
"""Size above which a column is not kept but read for each search. Metadata may hold long texts."""

PAIR_BYTES = 8 + 4 + 1
"""Size of a row, a value's place and its kind."""

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
OTHER = object()
"""Value of a list or an object: it exists, but equals nothing."""

Mask = NDArray[np.bool_]
LoadField = Callable[[Comparison, Sequence[int]], Iterable[Row]]
"""Function that reads number, version in the index and value of a field of some memories."""


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """Values of one field, as pairs of a row and a value: none for a row without one, several for tags and lists."""

    count: int = 0  # number of rows it covers
    rows: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    values: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))
    kinds: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))  # of the values
    nbytes: int = 0

    def extend(self, count: int, pairs: Iterable[tuple[int, object]]) -> FieldColumn:
        """Return a column that covers `count` rows, with more pairs of a row and a value."""
        rows, kinds, values = list[int](), list[int](), list[object]()
        # Equal texts are kept once.
        known = dict[tuple[int, object], object]()
        for row, value in pairs:
            kind = _find_kind(value)
            rows.append(row)
            kinds.append(kind)
            values.append(known.setdefault((kind, value), value))
        added = np.empty(len(values), np.object_)
        added[:] = values
        return FieldColumn(
            count,
            np.append(self.rows, np.array(rows, np.int32)),
            np.append(self.values, added),
            np.append(self.kinds, np.array(kinds, np.int8)),
            self.nbytes + PAIR_BYTES * len(values) + sum(map(sys.getsizeof, known.values())),
        )

    def match(self, op: str, value: Scalar) -> Mask:
        """Return a mask of the rows whose values pass a comparison."""
        mask = np.zeros(self.count, np.bool_)
        if op == EXISTS:
            mask[self.rows] = True
            return mask
        compared = _count_microseconds(value) if isinstance(value, datetime) else value
        # A number is neither more nor less than a text, and 1 is not true.
        is_alike = self.kinds == _find_kind(compared)
        compare = operator.eq if op == EQUAL else ORDERINGS[op]
        passes = np.asarray(compare(self.values[is_alike], compared), np.bool_)
        mask[self.rows[is_alike][passes]] = True
        return mask


class FieldColumns:
    """Columns of one index. Threads may match at the same time; then a column may be read twice."""

    def __init__(self) -> None:
        self.held: Mapping[tuple[str, tuple[str, ...]], FieldColumn] = {}

    def match(self, condition: Condition, rows: IndexRows, load: LoadField) -> Mask:
        """Return a mask of the rows that meet a condition."""
        match condition:
            case And(parts) | Or(parts):
                join = np.logical_and if isinstance(condition, And) else np.logical_or
                masks: list[Mask] = [self.match(part, rows, load) for part in parts]
                return np.asarray(join.reduce(masks), np.bool_)
            case Not(part):
                return ~self.match(part, rows, load)
        if condition.field == STATE:
            # A search finds only live memories.
            return np.full(rows.count, condition.op == EXISTS or condition.value == State.LIVE)
        return self._current(condition, rows, load).match(condition.op, condition.value)[: rows.count]

    def _current(self, comparison: Comparison, rows: IndexRows, load: LoadField) -> FieldColumn:
        """Return the column of a field, with the rows that were added since it was read."""
        key = (comparison.field, comparison.path)
        column = self.held.get(key, FieldColumn())
        if column.count >= rows.count:
            return column
        new = np.flatnonzero(rows.is_kept[column.count :]) + column.count
        found = {row[0]: row[1:] for row in load(comparison, rows.seqs[new].tolist())}
        pairs, is_current = list[tuple[int, object]](), True
        for at, seq, version in zip(new.tolist(), rows.seqs[new].tolist(), rows.versions[new].tolist(), strict=True):
            found_version, value = found.get(seq, (None, None))
            is_current = is_current and found_version == version
            pairs += [(at, each) for each in _list_values(comparison.field, value)]
        column = column.extend(rows.count, pairs)
        if is_current and column.nbytes <= MAX_COLUMN_BYTES:
            # Otherwise the index is ahead of this transaction or behind it, and another one reads these rows again.
            others = [(name, each) for name, each in self.held.items() if name != key]
            self.held = dict([*others[-MAX_COLUMNS + 1 :], (key, column)])
        return column


def _list_values(field: str, stored: object) -> Iterator[object]:
    """Yield the values of a field as the database returns it."""
    if stored is None or stored == "":
        return
    if field in JSON_FIELDS:
        for value in list_json_values(json.loads(str(stored))):
            yield OTHER if isinstance(value, list | dict) else value
    elif field == "tags":
        yield from filter(None, str(stored).split(TAG_BORDER))
    elif field.endswith("_at"):
        assert isinstance(stored, str | datetime)
        yield _count_microseconds(moment(stored))
    else:
        yield stored


def _find_kind(value: object) -> int:
    """Return a number for values that can be compared with each other."""
    return 2 if isinstance(value, bool) else 1 if isinstance(value, int | float) else 3 if isinstance(value, str) else 0


def _count_microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND
