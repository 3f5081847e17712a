"""Built-in embedder: all-MiniLM-L6-v2, a sentence encoder, in 23 MB inside the package. Downloads nothing.

`tools/embedder` makes the graph, `tools/ranking` fits the map of questions to answers, and `tools/facts` makes the
graph that reads statements from the states of the encoder's third layer. onnxruntime runs both on the caller's thread:
it starts no threads, and `run` may be called by several at once. Text is split into the word pieces of BERT's uncased
vocabulary, as the model's own tokenizer does.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellkept.errors import ModelError
from wellkept.program import FORMER_NAME
from wellkept.providers.checked import NATIVE_CALLS
from wellkept.settings import load_onnxruntime

MAX_WORD_CHARS = 100
"""A longer word is unknown: it is a hash or an encoded blob."""

MAX_READ_CHARS = 25_000
"""Characters of a text that are read. Its first pieces are in fewer, unless it has no words."""

MAX_CACHED_WORDS = 50_000
MAX_CACHED_CHARS = 20_000

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"

# Scripts written without spaces: each character is a separate word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Fold(dict[int, str]):
    """Translation table for `str.translate`: lower case, no accents, a space around each punctuation mark.

    Folding one character at a time keeps the cost linear; normalising a whole text is quadratic in a run of accents.
    """

    def __missing__(self, code: int) -> str:
        folded = _fold_char(chr(code))
        if len(self) < MAX_CACHED_CHARS:
            self[code] = folded
        return folded


def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    # A character that Unicode does not know yet ("Cn") makes its word unknown, like that of a script without pieces.
    if category in ("Cc", "Cf", "Co", "Cs") or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    letters = (each for each in unicodedata.normalize("NFD", char) if unicodedata.category(each) != "Mn")
    folded = "".join(f" {each} " if _is_punctuation(each) else each for each in "".join(letters).lower())
    if any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
        return f" {folded} "
    return folded


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or (char.isascii() and not char.isalnum() and char.isprintable())


class WordPieces:
    """Splits a text into numbers of pieces, longest match first. Safe to share between threads."""

    def __init__(self, pieces: Mapping[str, int], *, limit: int) -> None:
        """`pieces` maps each piece to its number; "##" marks one that continues a word. `limit` is per text."""
        self._ids = pieces
        self._limit = limit - 2
        self._longest = max(map(len, pieces), default=0)
        self._fold = _Fold()
        self._words: dict[str, Sequence[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """Return the numbers of the text's first pieces, between those that mark the first and the last."""
        found: list[int] = []
        for word in text[:MAX_READ_CHARS].translate(self._fold).split():
            found += self._words.get(word) or self._split(word)
            if len(found) >= self._limit:
                break
        return [self._ids[FIRST], *found[: self._limit], self._ids[LAST]]

    def _split(self, word: str) -> Sequence[int]:
        pieces = self._match(word) if len(word) <= MAX_WORD_CHARS else []
        found = pieces or [self._ids[UNKNOWN]]
        if len(self._words) >= MAX_CACHED_WORDS:
            # Rare enough that clearing is cheaper than tracking ages on every lookup.
            self._words.clear()
        self._words[word] = found
        return found

    def _match(self, word: str) -> list[int]:
        """Return the pieces of a word; none if a part of it is no piece."""
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    found.append(number)
                    start, prefix = end, "##"
                    break
            else:
                return []
        return found


GRAPH_FILE, VOCABULARY_FILE = "minilm.onnx", "minilm_vocabulary.txt"
ANSWER_MAP_FILE = "minilm_answer_map.f16"
FACTS_FILE = "minilm_facts.onnx"
NAME = "minilm-l6-v2-int8-1b7f6630"
"""Name of the vectors. A graph that makes others must have another name."""

DIMENSIONS = 384
MAX_PIECES = 256
"""Pieces of a text that are read, about 200 words."""

PIECES_PER_BATCH = 256
"""Pieces that are computed together. Of more, the numbers no longer fit into a processor's cache."""

ERRORS_ONLY = 3
ADVICE = (
    "onnxruntime cannot be imported ({error}), so recall works by words alone. Run: pip install --force-reinstall "
    "onnxruntime, or choose another embedder with WELLKEPT_EMBEDDER."
)

Floats = NDArray[np.float32]


class MiniLMEmbedder:
    """Embeds texts with the packaged encoder. Safe to share between threads."""

    name: str = NAME
    dimensions: int = DIMENSIONS
    replaces = (f"{FORMER_NAME}-static-256-v1", f"{FORMER_NAME}-static-256-v2")  # built-in embedders before this one
    is_builtin = True  # it only computes, so recall runs it on the caller's thread

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector, as a row, for each text. Raises: ModelError."""
        return _load().embed(texts)

    def move_to_answer(self, vector: Floats) -> Floats:
        """Return a question's vector moved to where those of its answers are, to compare memories with.

        It is shorter than 1 if the question is hardly more than a typical one: that is near to nothing.
        """
        return move_to_answer(vector, _read_answer_map())


def read_statements(texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the vector of each text, and its reading: what `facts.rules_ratings` judges statements by.

    Raises: ModelError.
    """
    return _load().read(texts)


@cache
def _read_answer_map() -> Floats:
    stored = (resources.files(__package__) / ANSWER_MAP_FILE).read_bytes()
    return np.frombuffer(stored, "<f2").astype(np.float32).reshape(DIMENSIONS + 1, DIMENSIONS)


def move_to_answer(vector: Floats, answer_map: Floats) -> Floats:
    """Apply a linear map, whose last row is added."""
    moved: Floats = vector @ answer_map[:-1] + answer_map[-1]
    return moved


@dataclass(frozen=True, slots=True)
class _Encoder:
    session: Any
    open_facts: Callable[[], Any]
    split: WordPieces

    def embed(self, texts: Sequence[str]) -> Floats:
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        for batch, inputs in self._make_batches(texts):
            vectors[batch] = _run(self.session, ["vectors"], inputs)[0]
        return vectors

    def read(self, texts: Sequence[str]) -> tuple[Floats, Floats]:
        vectors, readings = (np.empty((len(texts), DIMENSIONS), np.float32) for _ in range(2))
        facts = NATIVE_CALLS.call("built-in encoder of facts", self.open_facts)
        for batch, inputs in self._make_batches(texts):
            vectors[batch], states = _run(self.session, ["vectors", "states"], inputs)
            readings[batch] = _run(facts, ["readings"], {"states": states, "mask": inputs["mask"]})[0]
        return vectors, readings

    def _make_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], dict[str, NDArray[Any]]]]:
        """Yield texts by their numbers, with the pieces and the mask that the graph takes."""
        pieces = [self.split(text) for text in texts]
        # Texts of similar length share a batch, which keeps the padding small.
        order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
        while order:
            longest = len(pieces[order[0]])
            count = max(1, PIECES_PER_BATCH // longest)
            batch, order = order[:count], order[count:]
            ids = np.array([pieces[each] + [0] * (longest - len(pieces[each])) for each in batch], np.int64)
            mask = np.array([np.arange(longest) < len(pieces[each]) for each in batch], np.float32)
            yield batch, {"ids": ids, "mask": mask}


def _run(session: Any, outputs: list[str], inputs: Mapping[str, NDArray[Any]]) -> Sequence[Floats]:
    # The runtime's errors share no narrower type.
    answers: Sequence[Floats] = NATIVE_CALLS.call("built-in embedder", lambda: session.run(outputs, inputs))
    return answers


_lock = threading.Lock()
_loaded: list[_Encoder] = []
"""The encoder of this process, once loaded."""

_inherited: list[_Encoder] = []
"""Encoders of the process that forked this one. Another thread may have been using them, so they are not even freed."""


def _load() -> _Encoder:
    """Return the encoder, which is loaded once for all stores of the process. Raises: ModelError."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(NATIVE_CALLS.call("built-in embedder", _open))
    return _loaded[0]


def _open() -> _Encoder:
    try:
        runtime = load_onnxruntime()
    except ImportError as error:
        raise ModelError(ADVICE.format(error=error)) from error
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    folder = resources.files(__package__)

    def open_graph(name: str) -> Any:
        with resources.as_file(folder / name) as path:
            return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    pieces = (folder / VOCABULARY_FILE).read_text("utf-8").rstrip("\n").split("\n")
    split = WordPieces({piece: number for number, piece in enumerate(pieces)}, limit=MAX_PIECES)
    # Programs that log no turns never open the second graph.
    return _Encoder(open_graph(GRAPH_FILE), cache(lambda: open_graph(FACTS_FILE)), split)


def _start_again() -> None:
    """Load the encoder anew in a forked child."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_loaded)
    _loaded.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
