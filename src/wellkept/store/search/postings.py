"""Inverted list of `store.search.index`: the rows in which each word occurs, and how often.

The list is a few sorted segments. A segment has the distinct word hashes, and for each of them a run of entries: a row
(24 bits) and a count (8 bits) in one number. New rows become a segment, which is merged with those before it as long as
they are not much larger, nor too large. So adding a row never sorts the whole list, and a search has few segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_SEGMENT = 4096
"""Entries below which a segment is merged with the next one."""

GROWTH = 4
"""A segment is merged with the next one unless it has this many times as many entries."""

MAX_MERGED = 1 << 18
"""Entries above which segments stay apart: a large list is loaded in parts, and merging them takes longer than a search
in each of them."""

Floats = NDArray[np.float32]
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
