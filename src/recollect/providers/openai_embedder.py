"""Vectors from an OpenAI-compatible endpoint, over the network.

The endpoint is somebody else's program, so nothing it does is taken for granted: it may be slow, busy, gone, redirect
us elsewhere or answer with nonsense. Each of these ends in a ModelError whose sentence holds neither key nor text.
"""

from __future__ import annotations

import math
import random
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from json import loads
from urllib.parse import urlsplit, urlunsplit

import httpx2
import numpy as np
from numpy.typing import NDArray

from recollect.errors import Invalid, ModelError

DEFAULT_BASE_URL = "https://api.openai.com/v1"
BATCH = 64
MAX_CHARS = 8_000  # such endpoints refuse texts of more than about 8,000 tokens
MIN_CHARS = 200  # a text this short was not refused for its length
MAX_ANSWER_BYTES = 32 * 1024 * 1024
LONGEST_PAUSE = 20.0

BUSY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Answers after which the same request may succeed."""

TOO_MUCH = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Answers after which a smaller request may succeed."""

ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "; check openai_api_key",
    HTTPStatus.FORBIDDEN: "; check openai_api_key",
    HTTPStatus.NOT_FOUND: "; check openai_base_url and the name of the model",
}


@dataclass(frozen=True, slots=True)
class _Patience:
    """How long one question may take, and how often it may be asked again."""

    seconds: float  # for each attempt
    retries: int


class _Refused(Exception):
    """The endpoint answered, but not with vectors."""

    def __init__(self, status: int, retry_after: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.retry_after = retry_after  # in seconds, if it said


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
        self._url, self._host = _endpoint(base_url or DEFAULT_BASE_URL)
        self.name = f"openai:{model}@{self._host}"
        self._model = model
        self._headers = {"Authorization": f"Bearer {_checked_key(api_key)}"} if api_key.strip() else {}
        self._patience = _Patience(timeout, retries)
        self._query_patience = _Patience(query_timeout, 0)
        self._first_pause = first_pause
        self._dimensions: int | None = None
        self._client: httpx2.Client | None = None
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
        except _Refused as refusal:
            raise self._explained(refusal) from None
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises: ModelError."""
        try:
            return self._checked(self._asked(texts, self._patience), len(texts))
        except _Refused as refusal:
            if refusal.status not in TOO_MUCH or (len(texts) == 1 and len(texts[0]) <= MIN_CHARS):
                raise self._explained(refusal) from None
        # Endpoints differ in how many texts, and how long ones, they take at once, and few of them say.
        if len(texts) == 1:
            return self._vectors([texts[0][: len(texts[0]) // 2]])
        middle = len(texts) // 2
        return np.concatenate([self._vectors(texts[:middle]), self._vectors(texts[middle:])])

    def _asked(self, texts: Sequence[str], patience: _Patience) -> bytes:
        """The body of the answer, after retries.

        Raises: _Refused, ModelError.
        """
        for attempt in range(patience.retries + 1):
            is_last = attempt == patience.retries
            pause = min(self._first_pause * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5)
            try:
                return self._post(texts, patience.seconds)
            except _Refused as refusal:
                asked_for = refusal.retry_after or 0.0
                if is_last or refusal.status not in BUSY or asked_for > LONGEST_PAUSE:
                    raise
                pause = max(pause, asked_for)
            except httpx2.TimeoutException as error:
                if is_last:
                    raise ModelError(f"The embedding endpoint at {self._host} did not answer in time.") from error
            except httpx2.TransportError as error:
                if is_last:
                    raise ModelError(f"The embedding endpoint at {self._host} cannot be reached.") from error
            time.sleep(pause)
        raise AssertionError("the last attempt answers or raises")

    def _post(self, texts: Sequence[str], seconds: float) -> bytes:
        """Raises: _Refused, ModelError, httpx2.TransportError."""
        deadline = time.monotonic() + seconds
        body = {"model": self._model, "input": list(texts)}
        with self._opened().stream(
            "POST", self._url, json=body, headers=self._headers, timeout=seconds, follow_redirects=False
        ) as response:
            if response.status_code != HTTPStatus.OK:
                raise _Refused(response.status_code, _retry_after(response.headers))
            answer = bytearray()
            for part in response.iter_bytes():
                answer += part
                if len(answer) > MAX_ANSWER_BYTES:
                    raise ModelError(f"The embedding endpoint at {self._host} answered with too much.")
                if time.monotonic() > deadline:  # the client's own timeout starts anew with every part
                    raise httpx2.ReadTimeout("the answer came too slowly")
            return bytes(answer)

    def _checked(self, answer: bytes, count: int) -> NDArray[np.float32]:
        """The vectors of an answer, in the order of the question, of length 1.

        Raises: ModelError.
        """
        wrong = ModelError(f"The embedding endpoint at {self._host} should have answered with {count} vectors.")
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
            raise ModelError(f"The embedding endpoint at {self._host} answered with vectors of {lengths}.")
        matrix /= np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)  # no overflow below
        lengths_of_rows = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not lengths_of_rows.all():
            raise wrong
        unit: NDArray[np.float32] = (matrix / lengths_of_rows).astype(np.float32)
        return unit

    def _explained(self, refusal: _Refused) -> ModelError:
        status = refusal.status
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            redirect = "wants to send us elsewhere, which is not followed; set openai_base_url to the final address"
            return ModelError(f"The embedding endpoint at {self._host} {redirect}.")
        advice = ADVICE.get(status, "")
        return ModelError(f"The embedding endpoint at {self._host} answered with status {status}{advice}.")

    def _opened(self) -> httpx2.Client:
        """One client for all threads, so that connections are used again; it goes when this embedder goes."""
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client()
                weakref.finalize(self, self._client.close).atexit = False
            return self._client


def _endpoint(base_url: str) -> tuple[str, str]:
    """The address of the embeddings below a base address, and the host as it may be shown.

    >>> _endpoint("http://localhost:11434/v1/")
    ('http://localhost:11434/v1/embeddings', 'localhost:11434')
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise Invalid("openai_base_url is an address such as https://api.openai.com/v1.")
    if parts.username is not None or parts.password is not None:
        raise Invalid("openai_base_url must not hold a name or password; the key belongs in openai_api_key.")
    url = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/embeddings", parts.query, ""))
    return url, host if port is None else f"{host}:{port}"


def _checked_key(api_key: str) -> str:
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise Invalid("openai_api_key holds characters that no key has; copy it again.")
    return key


def _sendable(text: str) -> str:
    """Endpoints refuse empty texts and texts that are too long; half a surrogate pair cannot be sent at all."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode() if text.strip() else "."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the endpoint asks us to wait: it says a number, or a date, to be read by its own clock.

    >>> _retry_after({"retry-after": "1.5"})
    1.5
    >>> _retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:09 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"})
    9.0
    """
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            until, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", ""))
            seconds = (until - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
