"""Search index of one owner in memory: a matrix of vectors and an inverted list of words.

The database keeps each record's index entry in compact columns. Here they become NumPy arrays, which answer a search
in well under a millisecond for ten thousand records, regardless of the size of the database.

Words are in an inverted list, vectors in one byte per dimension (`store.search.encoding`).

Inverted list of `store.search.index`: the rows in which each word occurs, and how often.

The list is a few sorted segments. A segment has the distinct word hashes, and for each of them a run of entries: a row
(24 bits) and a count (8 bits) in one number. New rows become a segment, which is merged with those before it as long as
they are not much larger, nor too large. So adding a row never sorts the whole list, and a search has few segments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_not
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wellkept.language.text import FIXED
from wellkept.model import Kind, Match
from wellkept.recall.rules_features import BM25_B, BM25_K1, SPEAKERS, Evidence, Frame, number_conversations
from wellkept.store.engine import IndexQuery, RegisteredEmbedder, Row
from wellkept.store.search.encoding import COMPACT_ENCODING, Bytes, Encoding, Floats, Numbers, word_key
from wellkept.store.search.index_rows import HIDDEN, NEVER, FieldColumns, IndexRows, LoadField
from wellkept.store.tables.rows import moment

A = TypeVar("A", np.bool_, np.float32)
V = TypeVar("V", bound=Hashable)
N = TypeVar("N", np.int8, np.int64, np.float64)

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

    def occurrences(
        self, keys: Sequence[int], places: NDArray[np.int32] | None, total: int, *, is_whole: bool
    ) -> list[Occurrences]:
        """Return the places and counts of each word. `places` maps `total` rows to places; -1 omits a row.

        `is_whole` tells that no row is omitted. Without `places`, each row is at its own place.
        """
        found = self.find(keys)
        # All words at once: most of the time would go to calls on short arrays.
        entries = np.concatenate(found) if found else NO_ENTRIES
        ends = np.cumsum([len(each) for each in found]).tolist()
        rows, counts = (entries >> np.uint32(8)).astype(np.int64), (entries & np.uint32(0xFF)).astype(np.float32)
        # Rows may have been added since `places` was made.
        is_new = len(rows) > 0 and int(rows.max()) >= total
        at = rows if places is None else places.take(rows, mode="clip").astype(np.int64)
        if is_new:
            at = np.where(rows < total, at, -1)
        split = [(at[low:high], counts[low:high]) for low, high in zip([0, *ends], ends, strict=False)]
        if is_whole and not is_new:
            return split
        return [(each[each >= 0], count[each >= 0]) for each, count in split]

    def mark_bits(self, keys: Sequence[int], places: NDArray[np.int32], count: int) -> NDArray[np.uint8]:
        """Return a number for each of `count` places, with a bit set for each of the words that occurs there."""
        bits = np.zeros(count, np.uint8)
        for bit, (at, _) in enumerate(self.occurrences(keys, places, len(places), is_whole=False)):
            bits[at] |= np.uint8(1 << bit)
        return bits


NO_ENTRIES: Entries = np.empty(0, np.uint32)


def row_numbers(entries: Entries) -> NDArray[np.int64]:
    return (entries >> np.uint32(8)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class IndexView:
    """Query-independent part of the evidence: rows grouped by conversation and in their order."""

    rows: IndexRows
    allowed: NDArray[np.bool_]
    kept: NDArray[np.int32] | None  # row numbers in that order; None if it is the order of all rows
    places: NDArray[np.int32] | None  # place of each row in that order; -1 if filtered out
    is_embedded: bool
    is_whole: bool  # no row is filtered out
    evidence: Evidence

    @classmethod
    def build(cls, rows: IndexRows, words: Words, allowed: NDArray[np.bool_]) -> IndexView:
        found = np.flatnonzero(allowed).astype(np.int32)
        seqs, speakers, since = rows.seqs[found], rows.speakers[found], rows.since[found]
        # Conversations of rows without a session have negative numbers.
        sessions = rows.sessions[found].astype(np.int64) & 0xFFFFFFFF
        conversations = number_conversations(sessions, seqs=seqs, speakers=speakers, since=since.astype(np.float64))
        order = np.lexsort((seqs, conversations))
        kept, conversations = found[order], conversations[order]
        is_whole = len(kept) == rows.count
        is_in_order = is_whole and bool((kept[1:] > kept[:-1]).all())
        places = np.full(rows.count, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        lengths = rows.lengths[: rows.count] if is_in_order else rows.lengths[kept]
        frame = Frame.of(conversations, lengths) if len(kept) else None
        evidence = Evidence(
            # Without a copy if possible: a large index would take a tenth more memory.
            seqs=rows.seqs[: rows.count] if is_in_order else seqs[order],
            conversations=conversations if frame is None else frame.talk,
            lengths=lengths,
            since=rows.since[: rows.count] if is_in_order else since[order],
            speakers=rows.speakers[: rows.count] if is_in_order else speakers[order],
            turns=((sessions != 0) & (speakers != 0))[order],
            traits=words.mark_bits([word_key(each) for each in FIXED], places, len(kept)),
            cosines=None,
            occurrences=(),
            frame=frame,
        )
        is_embedded = bool(rows.embedded[: rows.count].all())
        if is_in_order:
            return cls(rows, allowed, None, None, is_embedded, is_whole, evidence)
        return cls(rows, allowed, kept, places, is_embedded, is_whole, evidence)

    def arrange(self, column: NDArray[A]) -> NDArray[A]:
        """Return the values of the rows in the order of the evidence."""
        return column if self.kept is None else column[self.kept]

    @property
    def nbytes(self) -> int:
        evidence, frame = self.evidence, self.evidence.frame
        derived = (evidence.seqs, evidence.lengths, evidence.since, evidence.speakers, evidence.turns)
        arrays = [self.allowed, evidence.traits, *(each for each in derived if each.base is None)]
        arrays += [each for each in (self.kept, self.places) if each is not None]
        return sum(int(each.nbytes) for each in arrays) + (0 if frame is None else frame.nbytes)


HIDDEN_SHARE = 0.05
"""Share of hidden rows above which an index is compacted."""

MAX_VIEWS = 4
"""Number of group selections for which an index caches the data that does not depend on the query."""


EMPTY_BYTES = 4096
"""Approximate size of an empty index, which dominates when there are many small owners."""


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
        self._measured: tuple[tuple[object, ...], int] = ((), 0)  # parts that `nbytes` last measured, and the result

    @property
    def count(self) -> int:
        return self._rows.count

    @property
    def nbytes(self) -> int:
        rows, words, views, columns = parts = (self._rows, self._words, self._views, self._columns.held)
        known, nbytes = self._measured
        if not known or any(map(is_not, known, parts)):  # measure only after a change: every search needs the size
            nbytes = EMPTY_BYTES + rows.nbytes + words.nbytes
            nbytes += sum(view.nbytes for view in views.values()) + sum(each.nbytes for each in columns.values())
            self._measured = (parts, nbytes)
        return nbytes

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
            sessions=_convert(sessions, _session_number, np.int64),
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
        kept = self._copy_with(
            replace(rows, expiries=np.where(stays, rows.expiries[: rows.count], rows.expiries.dtype.type(HIDDEN)))
        )
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
        occurrences = words.occurrences(keys, view.places, rows.count, is_whole=view.is_whole)
        allowed = None
        if where is not None and load is not None:
            allowed = view.arrange(self._columns.match(where, rows, load))
        cosines = None
        if vector is not None:
            cosines = rows.multiply(vector)
            if not view.is_embedded:
                cosines[~rows.embedded[: rows.count]] = np.nan
            cosines = view.arrange(cosines)
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
