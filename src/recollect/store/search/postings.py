"""The inverted list of `store.search.index`: where each word occurs, and how often.

Every occurrence is one 64-bit number, word hash (32 bits), row (24), count (8). Sorted, a word's rows lie side by side.
New rows go to an unsorted tail that is merged now and then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_TAIL = 4096
TAIL_SHARE = 0.1

Floats = NDArray[np.float32]
Packed = NDArray[np.uint64]

NO_WORDS: Packed = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Words:
    """The inverted list, and the unsorted tail of what came since it was sorted."""

    inverted: Packed
    tail: Packed

    def extended(self, packed: Packed) -> Words:
        tail = np.concatenate((self.tail, packed))
        if len(tail) <= max(MIN_TAIL, TAIL_SHARE * len(self.inverted)):
            return Words(self.inverted, tail)
        merged = np.concatenate((self.inverted, tail))
        merged.sort()
        return Words(merged, NO_WORDS)

    def holding(self, key: int) -> Packed:
        """Every occurrence of one word."""
        low = self.inverted.searchsorted(np.uint64(key << 32))
        high = self.inverted.searchsorted(np.uint64(key << 32 | 0xFFFFFFFF), side="right")
        if not len(self.tail):
            return self.inverted[low:high]
        late = self.tail[(self.tail >> np.uint64(32)) == np.uint64(key)]
        return np.concatenate((self.inverted[low:high], late))

    def occurrences(self, key: int, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        """Where one word occurs and how often; `places` numbers the rows anew, and leaves those out that get -1."""
        found = self.holding(key)
        numbers = row_numbers(found)
        if len(numbers) and numbers.max() >= len(places):  # of rows that came meanwhile
            found, numbers = found[numbers < len(places)], numbers[numbers < len(places)]
        at = places[numbers]
        counts = (found & np.uint64(0xFF)).astype(np.float32)
        if not len(at) or at.min() >= 0:
            return at, counts
        return at[at >= 0], counts[at >= 0]


def row_numbers(packed: Packed) -> NDArray[np.int64]:
    return ((packed >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.int64)
