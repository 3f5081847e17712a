"""Embedder and language model at OpenAI-compatible endpoints. Answers are checked before they are used."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from http import HTTPStatus
from json import loads

import numpy as np
from numpy.typing import NDArray

from wellkept.errors import ModelError
from wellkept.model import Json
from wellkept.providers.endpoint import ABOUT_THE_TEXT, DEFAULT_BASE_URL, Endpoint, EndpointRefusal, Patience

BATCH = 64
MAX_CHARS = 8_000  # such endpoints refuse texts of more than about 8,000 tokens
MIN_CHARS = 200  # a text this short was not refused for its length


class OpenAIEmbedder:
    """`extension.Embedder` over HTTP. Connects on first use; safe to share between threads."""

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
        """Length of the vectors, learned from the first answer of the endpoint. Raises: ModelError."""
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector for each text. Raises: ModelError."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        sent = [_prepare_text(text) for text in texts]
        blocks = [self._embed_batch(sent[start : start + BATCH]) for start in range(0, len(sent), BATCH)]
        return np.concatenate(blocks)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return one vector, without retries: a caller is waiting and can do without it. Raises: ModelError."""
        try:
            vectors = self._parse_vectors(self._request([_prepare_text(text)], self._query_patience), 1)
        except EndpointRefusal as refusal:
            raise self._endpoint.explain(refusal) from None
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed one batch; split it when the endpoint refuses its size. Raises: ModelError."""
        try:
            return self._parse_vectors(self._request(texts, self._patience), len(texts))
        except EndpointRefusal as refusal:
            if refusal.status not in ABOUT_THE_TEXT or (len(texts) == 1 and len(texts[0]) <= MIN_CHARS):
                raise self._endpoint.explain(refusal) from None
        # Endpoints differ in how many texts they accept at once and how long, and few document it.
        if len(texts) == 1:
            return self._embed_batch([texts[0][: len(texts[0]) // 2]])
        middle = len(texts) // 2
        return np.concatenate([self._embed_batch(texts[:middle]), self._embed_batch(texts[middle:])])

    def _request(self, texts: Sequence[str], patience: Patience) -> bytes:
        """Raises: EndpointRefusal, ModelError."""
        return self._endpoint.ask({"model": self._model, "input": list(texts)}, patience)

    def _parse_vectors(self, answer: bytes, count: int) -> NDArray[np.float32]:
        """Parse the vectors of an answer, in the order of the request, scaled to unit length. Raises: ModelError."""
        malformed = ModelError(f"{self._endpoint.named} should have answered with {count} vectors.")
        try:
            entries = loads(answer)["data"]
            by_index = {entry.get("index", place): entry["embedding"] for place, entry in enumerate(entries)}
            matrix = np.array([by_index[place] for place in range(count)], dtype=np.float64)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise malformed from error
        if len(entries) != count or matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise malformed
        with self._lock:
            if self._dimensions is None:
                self._dimensions = matrix.shape[1]
        if matrix.shape[1] != self._dimensions:
            lengths = f"{matrix.shape[1]} numbers instead of {self._dimensions}"
            raise ModelError(f"{self._endpoint.named} answered with vectors of {lengths}.")
        # Scale by the largest component first, so that squaring in the norm cannot overflow.
        matrix /= np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        lengths_of_rows = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not lengths_of_rows.all():
            raise malformed
        unit: NDArray[np.float32] = (matrix / lengths_of_rows).astype(np.float32)
        return unit


def _prepare_text(text: str) -> str:
    """Return text the endpoint accepts: not empty, not too long, no unpaired surrogates."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode() if text.strip() else "."


MAX_COMPLETION_BYTES = 8 * 1024 * 1024
TEMPERATURE = 0.2
"""Low, because completions are summaries and descriptions, which should not wander off."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the answer's token limit: most endpoints know the first.

The newest models know only the second, and they refuse a temperature.
"""


class OpenAIModel:
    """`extension.Model` over HTTP. Connects on first use; safe to share between threads."""

    def __init__(
        self,
        model: str,
        api_key: str = "",
        base_url: str = "",
        *,
        timeout: float = 60.0,
        retries: int = 2,
        first_pause: float = 0.5,
        url_setting: str = "openai_base_url",
        key_setting: str = "openai_api_key",
    ) -> None:
        """Check the address and the key; `timeout` covers a whole answer including retries. Raises: Invalid."""
        self._endpoint = Endpoint(
            "chat/completions",
            what="model endpoint",
            api_key=api_key,
            base_url=base_url,
            url_setting=url_setting,
            key_setting=key_setting,
            first_pause=first_pause,
        )
        self.name = f"openai:{model}@{self._endpoint.host}"
        self._model = model
        self._timeout = timeout
        self._retries = retries
        self._is_new = False  # knows only the second name of the limit, and no temperature

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Return the answer of the model. Raises: ModelError."""
        question: Json = {"model": self._model, "messages": [_prepare_message(each) for each in messages]}
        seconds = self._timeout if timeout is None else timeout
        patience = Patience(seconds, self._retries, total=seconds)
        try:
            return self._parse_text(self._ask(question, max_tokens, patience))
        except EndpointRefusal as refusal:
            raise self._endpoint.explain(refusal) from None

    def _ask(self, question: Json, max_tokens: int | None, patience: Patience) -> bytes:
        """Ask with a token limit and a low temperature; if the endpoint refuses them, ask as the newest models want.

        Raises: EndpointRefusal, ModelError.
        """
        if not self._is_new:
            limited = {} if max_tokens is None else {LIMITS[0]: max_tokens}
            try:
                return self._endpoint.ask(
                    {**question, "temperature": TEMPERATURE, **limited}, patience, max_bytes=MAX_COMPLETION_BYTES
                )
            except EndpointRefusal as refusal:
                if refusal.status != HTTPStatus.BAD_REQUEST:
                    raise
        limited = {} if max_tokens is None else {LIMITS[1]: max_tokens}
        answer = self._endpoint.ask({**question, **limited}, patience, max_bytes=MAX_COMPLETION_BYTES)
        self._is_new = True
        return answer

    def _parse_text(self, answer: bytes) -> str:
        """Return the text of an answer, without the reasoning that some models send in other fields.

        Raises: ModelError.
        """
        try:
            content = loads(answer)["choices"][0]["message"]["content"]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ModelError(f"{self._endpoint.named} should have answered with a message.") from error
        if isinstance(content, str):
            return content
        # None if the model said nothing, or called a tool that was not offered.
        if content is None:
            return ""
        raise ModelError(f"{self._endpoint.named} answered with something other than text.")


def _prepare_message(message: Json) -> Json:
    """Replace unpaired surrogates, which cannot be sent."""
    content = message.get("content")
    if not isinstance(content, str):
        return dict(message)
    return {**message, "content": content.encode("utf-8", "replace").decode()}
