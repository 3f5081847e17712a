"""Encoding of index entries: the words and the vector of a record as short byte strings, and back.

A vector is one signed byte per dimension times a scale; the largest component is 127 or -127. A product of bytes takes
a tenth of the time of one of floats and a quarter of the memory. The question is split into two rows of bytes, a coarse
one and the rest that it leaves, so that its rounding does not count. Sums of products of bytes are exact: equal rows
get equal results, wherever they stand.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from wellkept.store.engine import Row
from wellkept.text_cache import cache_text

MAX_COUNT = 255
"""Maximum count of a word in one record: counts are stored in 8 bits."""

MAX_BYTE = 127

REST = 2 * MAX_BYTE
"""Factor of the rest of a question's vector: it is at most half a step of the coarse bytes."""

PART = 1 << 15
"""Rows multiplied at a time."""

Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoder of an index entry, and decoders for those of many records, as one engine returns them."""

    # Returns the columns of an entry with these words and this vector, for the statements `index_…` and `set_…_vector`.
    encode: Callable[[Sequence[str], Floats | None], Mapping[str, Any]]
    # Returns how often each word occurs in an entry, as the fragment `stored_words` reads it; words may be hashes.
    counts: Callable[[Any], Mapping[Any, int]]
    # Returns the word codes of all records in sequence, and the number of codes per record.
    words: Callable[[Sequence[Any]], tuple[Codes, Numbers]]
    # Takes the dimensions; returns one row of bytes and one scale per record.
    vectors: Callable[[Sequence[bytes], int], tuple[Bytes, Floats]]
    versions: Callable[[Sequence[Row]], Numbers]  # one row (seq, version, embedder or 0) per record


@cache_text(65536)
def word_key(term: str) -> int:
    """Return a 32-bit hash of a word. A collision is rare and costs one weak false match."""
    key: int = zlib.crc32(term.encode())
    return key


def encode_terms(terms: Sequence[str]) -> bytes:
    """Encode a record's words: the code of each distinct word, little-endian."""
    if len(set(terms)) == len(terms):
        packed = array("Q", map(single_word_code, terms))
    else:
        counts = Counter(terms).items()
        packed = array("Q", [single_word_code(term) if n == 1 else word_code(term, n) for term, n in counts])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def count_terms(stored: bytes) -> Mapping[int, int]:
    """Return how often each word of a stored entry occurs, by its hash."""
    return {int(code) >> 32: int(code) & MAX_COUNT for code in np.frombuffer(stored, "<u8")}


def word_code(term: str, count: int) -> int:
    """Pack a word's hash (upper 32 bits) and its count into one number."""
    return word_key(term) << 32 | min(count, MAX_COUNT)


@cache_text(65536)
def single_word_code(term: str) -> int:
    """Return the code of a word that occurs once. Cached, because most words do."""
    return word_code(term, 1)


def decode_terms(blobs: Sequence[bytes]) -> tuple[Codes, Numbers]:
    """Decode the words of many records; return all codes and the number of codes per record."""
    codes = np.frombuffer(b"".join(blobs), dtype="<u8").astype(np.uint64)
    return codes, np.fromiter(map(len, blobs), np.int64, len(blobs)) // 8


def encode_vector(vector: Floats) -> bytes:
    """Encode a vector: a float32 scale, then one signed byte per dimension."""
    # Array methods and ufuncs are faster than NumPy's other functions; every write runs this.
    scale = np.maximum.reduce(np.abs(vector)).item() / MAX_BYTE or 1.0
    values: bytes = np.rint(vector * np.float32(1 / scale)).astype(np.int8).tobytes()
    return struct.pack("<f", scale) + values


def split_vectors(blobs: Sequence[bytes], dimensions: int) -> tuple[Bytes, Floats]:
    """Split encoded vectors into their bytes, one row each, and their scales."""
    stored = np.frombuffer(b"".join(blobs), dtype=np.dtype([("scale", "<f4"), ("values", "i1", (dimensions,))]))
    return stored["values"], stored["scale"]


def decode_rows(matrix: Bytes, scales: Floats) -> Floats:
    """Return the vectors, one row each."""
    decoded: Floats = matrix * scales[:, None]
    return decoded


def multiply(matrix: Bytes, scales: Floats, vector: Floats) -> Floats:
    """Return the product of each row with `vector`."""
    scale = max(vector.max().item(), -vector.min().item()) / MAX_BYTE or 1.0
    steps, split = vector / np.float32(scale), np.empty((2, len(vector)), np.int8)
    split[0] = coarse = steps.round()
    split[1] = ((steps - coarse) * np.float32(REST)).round()
    found = np.asarray(simsimd.cdist(matrix, split, metric="dot"))
    products: Floats = (found[:, 0] + found[:, 1] / REST).astype(np.float32)
    products *= scales * np.float32(scale)
    return products


def _decode_versions(rows: Sequence[Row]) -> Numbers:
    return np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)


def _encode_entry(terms: Sequence[str], vector: Floats | None) -> Mapping[str, Any]:
    return {"terms": encode_terms(terms), "vector": None if vector is None else encode_vector(vector)}


COMPACT_ENCODING = Encoding(_encode_entry, count_terms, decode_terms, split_vectors, _decode_versions)
"""Encoding of `encode_terms` and `encode_vector`."""
