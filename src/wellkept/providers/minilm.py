"""Built-in embedder: all-MiniLM-L6-v2, a sentence encoder, in 23 MB inside the package. Downloads nothing.

`tools/embedder` makes the graph, `tools/ranking` fits the map of questions to answers. onnxruntime runs the graph on
the caller's thread: it starts no threads, and `run` may be called by several at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellkept.errors import ModelError
from wellkept.program import FORMER_NAME
from wellkept.providers.foreign import NATIVE_CALLS
from wellkept.providers.word_pieces import WordPieces
from wellkept.settings import load_onnxruntime

GRAPH_FILE, VOCABULARY_FILE = "minilm.onnx", "minilm_vocabulary.txt"
ANSWER_MAP_FILE = "minilm_answer_map.f16"
GRAPH_SHA256 = "1b7f66300eac7299f947b18e23b5de4a95e7d640c40f3f1d8ac93d48ef30d300"
NAME = f"minilm-l6-v2-int8-{GRAPH_SHA256[:8]}"
"""Name of the vectors, which another graph would not make."""

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
    split: WordPieces

    def embed(self, texts: Sequence[str]) -> Floats:
        pieces = [self.split(text) for text in texts]
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        # Texts of similar length share a batch, which keeps the padding small.
        order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
        while order:
            count = max(1, PIECES_PER_BATCH // len(pieces[order[0]]))
            batch, order = order[:count], order[count:]
            vectors[batch] = self._run([pieces[number] for number in batch])
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, batch))
        ids = np.array([[*each, *[0] * (longest - len(each))] for each in batch], np.int64)
        mask = np.array([[1.0] * len(each) + [0.0] * (longest - len(each)) for each in batch], np.float32)
        # The runtime's errors share no narrower type.
        answer = NATIVE_CALLS.call("built-in embedder", lambda: self.session.run(None, {"ids": ids, "mask": mask}))
        vectors: Floats = answer[0]
        return vectors


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
    with resources.as_file(folder / GRAPH_FILE) as path:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    pieces = (folder / VOCABULARY_FILE).read_text("utf-8").rstrip("\n").split("\n")
    return _Encoder(session, WordPieces({piece: number for number, piece in enumerate(pieces)}, limit=MAX_PIECES))


def _start_again() -> None:
    """Load the encoder anew in a forked child."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_loaded)
    _loaded.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
