"""Encoding of index entries: the words and the vector of a record as short byte strings, and back.

`Words` is the list of postings that the words of many records are merged into.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.store.engine import Row

MAX_COUNT = 255
"""Maximum count of a word in one record: counts are stored in 8 bits."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint64]


# Merge the tail when it exceeds both MIN_TAIL and this share of the sorted list.
MIN_TAIL = 4096
TAIL_SHARE = 0.1

Packed = NDArray[np.uint64]

NO_WORDS: Packed = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Encoding:
    """Decoders for the index entries of many records, as one engine returns them."""

    # Returns the word codes of all records in sequence, and the number of codes per record.
    words: Callable[[Sequence[Any]], tuple[Codes, Numbers]]
    vectors: Callable[[Sequence[bytes], int], Floats]  # takes the dimensions; returns one row per record
    versions: Callable[[Sequence[Row]], Numbers]  # one row (seq, version, embedder or 0) per record


@lru_cache(maxsize=65536)
def word_key(term: str) -> int:
    """Return a 32-bit hash of a word. A collision is rare and costs one weak false match."""
    key: int = zlib.crc32(term.encode())
    return key


def encode_terms(terms: Sequence[str]) -> bytes:
    """Encode a record's words: the code of each distinct word, little-endian."""
    if len(set(terms)) == len(terms):
        packed = array("Q", map(single_word_code, terms))
    else:
        packed = array("Q", [word_code(term, count) for term, count in Counter(terms).items()])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def has_same_terms(stored: bytes, terms: Sequence[str]) -> bool:
    """Return True if a stored entry holds exactly these words, in any order."""
    expected = encode_terms(terms)
    return stored == expected or sorted(_split_codes(stored)) == sorted(_split_codes(expected))


def _split_codes(stored: bytes) -> list[bytes]:
    return [stored[at : at + 8] for at in range(0, len(stored), 8)]


def word_code(term: str, count: int) -> int:
    """Pack a word's hash (upper 32 bits) and its count into one number."""
    return word_key(term) << 32 | min(count, MAX_COUNT)


@lru_cache(maxsize=65536)
def single_word_code(term: str) -> int:
    """Return the code of a word that occurs once. Cached, because most words do."""
    return word_code(term, 1)


def decode_terms(blobs: Sequence[bytes]) -> tuple[Codes, Numbers]:
    """Decode the words of many records; return all codes and the number of codes per record."""
    codes = np.frombuffer(b"".join(blobs), dtype="<u8").astype(np.uint64)
    return codes, np.fromiter(map(len, blobs), np.int64, len(blobs)) // 8


def encode_vector(vector: Floats) -> bytes:
    """Encode a vector: a float32 scale, then one signed byte per dimension."""
    # The largest component becomes ±127. Array methods are faster than NumPy functions; every write runs this.
    scale = max(vector.max().item(), -vector.min().item()) / 127 or 1.0
    values: bytes = (vector * np.float32(1 / scale)).round().astype(np.int8).tobytes()
    return struct.pack("<f", scale) + values


def decode_vectors(blobs: Sequence[bytes], dimensions: int) -> Floats:
    """Decode vectors, one row each."""
    stored = np.frombuffer(b"".join(blobs), dtype=np.dtype([("scale", "<f4"), ("values", "i1", (dimensions,))]))
    matrix: Floats = stored["values"].astype(np.float32)
    matrix *= stored["scale"][:, None]
    return matrix


def _decode_versions(rows: Sequence[Row]) -> Numbers:
    return np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)


COMPACT_ENCODING = Encoding(words=decode_terms, vectors=decode_vectors, versions=_decode_versions)
"""Encoding of `encode_terms` and `encode_vector`."""


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


def row_numbers(packed: Packed) -> NDArray[np.int64]:
    return ((packed >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.int64)
