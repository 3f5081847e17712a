"""Vectors from an OpenAI-compatible endpoint, over the network. What it answers is checked before it is believed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from json import loads

import numpy as np
from numpy.typing import NDArray

from recollect.errors import ModelError
from recollect.providers.endpoint import ABOUT_THE_TEXT, DEFAULT_BASE_URL, Endpoint, Patience, Refused

BATCH = 64
MAX_CHARS = 8_000  # such endpoints refuse texts of more than about 8,000 tokens
MIN_CHARS = 200  # a text this short was not refused for its length


class OpenAIEmbedder:
    """`ports.Embedder` over HTTP. It asks nothing before it is first used, and may be used from many threads."""

    is_remote = True

    def __init__(
        self,
        model: str,
        api_key: str = "",
        base_url: str = DEFAULT_BASE_URL,
        *,
        timeout: float = 30.0,
        query_timeout: float = 3.0,
        retries: int = 3,
        first_pause: float = 0.5,
    ) -> None:
        """Raises: Invalid."""
        self._endpoint = Endpoint(
            "embeddings", what="embedding endpoint", api_key=api_key, base_url=base_url, first_pause=first_pause
        )
        self.name = f"openai:{model}@{self._endpoint.host}"
        self._model = model
        self._patience = Patience(timeout, retries)
        self._query_patience = Patience(query_timeout, 0)
        self._dimensions: int | None = None
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        """Learned from the endpoint's first answer; asked for if there was none yet.

        Raises: ModelError.
        """
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises: ModelError."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        sent = [_sendable(text) for text in texts]
        blocks = [self._vectors(sent[start : start + BATCH]) for start in range(0, len(sent), BATCH)]
        return np.concatenate(blocks)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """One vector, soon or not at all: somebody is waiting for it, and can do without.

        Raises: ModelError.
        """
        try:
            vectors = self._checked(self._asked([_sendable(text)], self._query_patience), 1)
        except Refused as refusal:
            raise self._endpoint.explained(refusal) from None
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises: ModelError."""
        try:
            return self._checked(self._asked(texts, self._patience), len(texts))
        except Refused as refusal:
            if refusal.status not in ABOUT_THE_TEXT or (len(texts) == 1 and len(texts[0]) <= MIN_CHARS):
                raise self._endpoint.explained(refusal) from None
        # Endpoints differ in how many texts, and how long ones, they take at once, and few of them say.
        if len(texts) == 1:
            return self._vectors([texts[0][: len(texts[0]) // 2]])
        middle = len(texts) // 2
        return np.concatenate([self._vectors(texts[:middle]), self._vectors(texts[middle:])])

    def _asked(self, texts: Sequence[str], patience: Patience) -> bytes:
        """Raises: Refused, ModelError."""
        return self._endpoint.ask({"model": self._model, "input": list(texts)}, patience)

    def _checked(self, answer: bytes, count: int) -> NDArray[np.float32]:
        """The vectors of an answer, in the order of the question, of length 1.

        Raises: ModelError.
        """
        wrong = ModelError(f"{self._endpoint.named} should have answered with {count} vectors.")
        try:
            entries = loads(answer)["data"]
            placed = {entry.get("index", place): entry["embedding"] for place, entry in enumerate(entries)}
            matrix = np.array([placed[place] for place in range(count)], dtype=np.float64)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise wrong from error
        if len(entries) != count or matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise wrong
        with self._lock:
            if self._dimensions is None:
                self._dimensions = matrix.shape[1]
        if matrix.shape[1] != self._dimensions:
            lengths = f"{matrix.shape[1]} numbers instead of {self._dimensions}"
            raise ModelError(f"{self._endpoint.named} answered with vectors of {lengths}.")
        matrix /= np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)  # no overflow below
        lengths_of_rows = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not lengths_of_rows.all():
            raise wrong
        unit: NDArray[np.float32] = (matrix / lengths_of_rows).astype(np.float32)
        return unit


def _sendable(text: str) -> str:
    """Endpoints refuse empty texts and texts that are too long; half a surrogate pair cannot be sent at all."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode() if text.strip() else "."
