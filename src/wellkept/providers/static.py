"""Built-in static embedder: a text is the weighted mean of its word pieces, looked up in a table.

The table ships with the package. It was distilled from two encoders over many sentences, so embedding only reads rows:
no model, no download, no other dependency, microseconds per text. `tools/embedder` builds it.
"""

import math
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from wellkept.program import FORMER_NAME

TABLE_FILE = "static_table.npz"
TABLE_SHA256 = "5d8a63d036606a8afb4e4025dfc1cf2ba2a2df11ec80da653b8f64e6bb3943a6"
DIMENSIONS = 256

MAX_WORD_CHARS = 100  # longer runs are hashes and encoded blobs, which would drown the words around them
MAX_CACHED_WORDS = 50_000
MAX_CACHED_CHARS = 20_000
PIECES_PER_BLOCK = 8_192  # bounds the memory of one step to 8 MB, however much text is embedded

# Scripts written without spaces: each character is a separate word.
_IDEOGRAPHS = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


class _Fold(dict[int, str]):
    """Translation table for `str.translate`: lower case, no accents, a space around each symbol.

    Folding one character at a time keeps the cost linear; normalising a whole text is quadratic in a run of accents.
    """

    def __missing__(self, code: int) -> str:
        folded = "".join(_fold_char(char) for char in unicodedata.normalize("NFD", chr(code).lower()))
        if len(self) < MAX_CACHED_CHARS:
            self[code] = folded
        return folded


def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if char.isspace():
        return " "
    if category == "Mn" or category[0] == "C" or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    if category[0] in "PS" or any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
        return f" {char} "
    return char


class WordPieces:
    """Splits text into the pieces of a vocabulary, longest match first; "##" marks a piece that continues a word.

    Unlike the reference tokenizer it also splits at symbols and skips an unknown character, where the reference would
    give up on the whole word ("great🎉").
    """

    def __init__(self, pieces: Mapping[str, int]) -> None:
        """`pieces` maps each piece to its id."""
        self._ids = pieces
        self._longest = max(map(len, pieces), default=0)
        self._fold = _Fold()
        self._words: dict[str, tuple[int, ...]] = {}

    def __call__(self, text: str) -> list[int]:
        """Return the ids of the text's pieces in order."""
        found: list[int] = []
        words = self._words
        for word in text.translate(self._fold).split():
            ids = words.get(word)
            if ids is None:
                ids = self._split_cached(word)
            found += ids
        return found

    def _split_cached(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._split(word)) if len(word) <= MAX_WORD_CHARS else ()
        if len(self._words) >= MAX_CACHED_WORDS:
            # Rare enough that clearing is cheaper than tracking ages on every lookup.
            self._words.clear()
        if ids:
            self._words[word] = ids
        return ids

    def _split(self, word: str) -> Iterator[int]:
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    yield number
                    start, prefix = end, "##"
                    break
            else:
                start += 1


@dataclass(frozen=True, slots=True)
class _Table:
    pieces: WordPieces
    rows: NDArray[np.int8]
    weights: NDArray[np.float32]  # scale of the row times the weight of the piece

    def sum_rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the sum of the rows, each times its weight: a product of a vector and a matrix."""
        found: NDArray[np.float32] = self.weights.take(ids).dot(self.rows.take(ids, 0).astype(np.float32))
        return found


class StaticEmbedder:
    """Embeds texts by looking up their word pieces in the packaged table. Safe to share between threads."""

    name: str = f"{FORMER_NAME}-static-256-v2"
    dimensions: int = DIMENSIONS
    is_builtin = True  # it only computes, so recall runs it on the caller's thread

    def __init__(self) -> None:
        self._table: _Table | None = None
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector, as a row, for each text; zeros for a text without a known piece.

        A text's row is bit-identical whatever other texts are embedded with it.
        """
        table = self._load()
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            ids = np.array(table.pieces(text), np.intp)
            vector = table.sum_rows(ids[:PIECES_PER_BLOCK])
            for at in range(PIECES_PER_BLOCK, len(ids), PIECES_PER_BLOCK):
                vector += table.sum_rows(ids[at : at + PIECES_PER_BLOCK])
            # Array methods are faster than NumPy functions; every write and every question runs this.
            vectors[row] = vector / np.float32(math.sqrt(vector.dot(vector)) or 1.0)
        return vectors

    def _load(self) -> _Table:
        if self._table is None:
            with self._loading:
                if self._table is None:
                    ids, rows, weights = _read_table(TABLE_FILE)
                    # Each embedder caches the words of its own store only.
                    self._table = _Table(WordPieces(ids), rows, weights)
        return self._table


@cache
def _read_table(name: str) -> tuple[Mapping[str, int], NDArray[np.int8], NDArray[np.float32]]:
    """Read the id of each piece, the rows and their weights, once for all embedders of the process."""
    packed = resources.files(__package__).joinpath(name)
    with packed.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        pieces = arrays["pieces"].tobytes().decode().split("\n")
        return {piece: number for number, piece in enumerate(pieces)}, arrays["rows"], arrays["weights"]
