"""A record's index entry as the database keeps it, and back: words and a vector, each a short byte string."""

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

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How an engine hands over the index entries of many records."""

    words: Callable[[Sequence[Any]], tuple[Codes, Numbers]]  # of all, one after the other; how many each has
    vectors: Callable[[Sequence[bytes], int], Floats]  # given their length, one row each
    versions: Callable[[Sequence[Row]], Numbers]  # (seq, version, embedder or 0), one row each


@lru_cache(maxsize=65536)
def word_key(term: str) -> int:
    """32 bits that stand for a word. Two words of one owner sharing them is rare and costs one weak false match."""
    key: int = zlib.crc32(term.encode())
    return key


def encode_terms(terms: Sequence[str]) -> bytes:
    """A record's words as they are stored: the code of each distinct word, little-endian."""
    if len(set(terms)) == len(terms):
        packed = array("Q", map(once, terms))
    else:
        packed = array("Q", [word_code(term, count) for term, count in Counter(terms).items()])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def is_same_terms(stored: bytes, terms: Sequence[str]) -> bool:
    """Return True if a stored entry holds exactly these words, in whatever order."""
    wanted = encode_terms(terms)
    return stored == wanted or sorted(_codes(stored)) == sorted(_codes(wanted))


def _codes(stored: bytes) -> list[bytes]:
    return [stored[at : at + 8] for at in range(0, len(stored), 8)]


def word_code(term: str, count: int) -> int:
    """A word and how often it occurs."""
    return word_key(term) << 32 | min(count, MAX_COUNT)


@lru_cache(maxsize=65536)
def once(term: str) -> int:
    """The code of a word that occurs once, as most do."""
    return word_code(term, 1)


def decode_terms(blobs: Sequence[bytes]) -> tuple[Codes, Numbers]:
    """The codes again, and how many of them are each record's."""
    codes = np.frombuffer(b"".join(blobs), dtype="<u8").astype(np.uint64)
    return codes, np.fromiter(map(len, blobs), np.int64, len(blobs)) // 8


def encode_vector(vector: Floats) -> bytes:
    """A vector as it is stored: a float32 scale, then one signed byte for each dimension."""
    # The methods, not the functions of the same names: a write of one memory spends a good part of its time here.
    scale = max(vector.max().item(), -vector.min().item()) / 127 or 1.0
    values: bytes = (vector * np.float32(1 / scale)).round().astype(np.int8).tobytes()
    return struct.pack("<f", scale) + values


def decode_vectors(blobs: Sequence[bytes], dimensions: int) -> Floats:
    """The vectors again, one row each."""
    stored = np.frombuffer(b"".join(blobs), dtype=np.dtype([("scale", "<f4"), ("values", "i1", (dimensions,))]))
    matrix: Floats = stored["values"].astype(np.float32)
    matrix *= stored["scale"][:, None]
    return matrix


def _versions(rows: Sequence[Row]) -> Numbers:
    return np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)


SHORT = Encoding(words=decode_terms, vectors=decode_vectors, versions=_versions)
"""As `encode_terms` and `encode_vector` make them."""
