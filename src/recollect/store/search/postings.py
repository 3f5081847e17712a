"""Inverted list of `store.search.index`: the rows in which each word occurs, and how often.

Every occurrence is one 64-bit number: word hash (32 bits), row (24), count (8). When sorted, the rows of a word are
adjacent. New rows go to an unsorted tail, which is merged when it has grown too long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Merge the tail when it exceeds both MIN_TAIL and this share of the sorted list.
MIN_TAIL = 4096
TAIL_SHARE = 0.1

Floats = NDArray[np.float32]
Packed = NDArray[np.uint64]

NO_WORDS: Packed = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Words:
    """Sorted inverted list and the unsorted tail of later occurrences."""

    inverted: Packed
    tail: Packed

    def extend(self, packed: Packed) -> Words:
        """Return a copy with more occurrences."""
        tail = np.concatenate((self.tail, packed))
        if len(tail) <= max(MIN_TAIL, TAIL_SHARE * len(self.inverted)):
            return Words(self.inverted, tail)
        merged = np.concatenate((self.inverted, tail))
        merged.sort()
        return Words(merged, NO_WORDS)

    def find(self, key: int) -> Packed:
        """Return every occurrence of one word."""
        low = self.inverted.searchsorted(np.uint64(key << 32))
        high = self.inverted.searchsorted(np.uint64(key << 32 | 0xFFFFFFFF), side="right")
        if not len(self.tail):
            return self.inverted[low:high]
        late = self.tail[(self.tail >> np.uint64(32)) == np.uint64(key)]
        return np.concatenate((self.inverted[low:high], late))

    def occurrences(self, key: int, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        """Return the places and counts of one word. `places` maps rows to places; -1 omits a row."""
        found = self.find(key)
        numbers = row_numbers(found)
        # Rows may have been added since `places` was made.
        if len(numbers) and numbers.max() >= len(places):
            found, numbers = found[numbers < len(places)], numbers[numbers < len(places)]
        at = places[numbers]
        counts = (found & np.uint64(0xFF)).astype(np.float32)
        if not len(at) or at.min() >= 0:
            return at, counts
        return at[at >= 0], counts[at >= 0]

    def mark_bits(self, keys: Iterable[int], places: NDArray[np.int64], total: int) -> NDArray[np.uint8]:
        """Return a number for each of `total` places, with a bit set for each of the words that occurs there."""
        bits = np.zeros(total, np.uint8)
        for bit, key in enumerate(keys):
            bits[self.occurrences(key, places)[0]] |= np.uint8(1 << bit)
        return bits


def row_numbers(packed: Packed) -> NDArray[np.int64]:
    return ((packed >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.int64)
