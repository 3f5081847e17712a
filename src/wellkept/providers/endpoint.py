"""HTTP client for OpenAI-compatible endpoints.

The endpoint is not trusted: it may be slow, busy or unreachable, redirect, or send more than fits into memory. Each of
these ends in a ModelError, whose message contains neither key nor text, or in `EndpointRefusal`, which the caller may
handle.
"""

from __future__ import annotations

import math
import random
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx2

from wellkept.errors import Invalid, ModelError, ModelRefused
from wellkept.model import Json

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_ANSWER_BYTES = 32 * 1024 * 1024
LONGEST_PAUSE = 20.0
"""Longest wait before a retry, in seconds."""

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
"""Status codes after which the same request may succeed."""

ABOUT_THE_TEXT = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
)
"""Status codes that concern the text: another request may succeed."""

ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "; check {key}",
    HTTPStatus.FORBIDDEN: "; check {key}",
    HTTPStatus.NOT_FOUND: "; check {url} and the name of the model",
}
"""Hints appended to the message of a failure, by status code."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits and number of retries of one request."""

    seconds: float  # for each attempt
    retries: int
    total: float = math.inf  # for all attempts and the pauses between them


class EndpointRefusal(Exception):
    """The endpoint answered with another status than 200."""

    def __init__(self, status: int, retry_after: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.retry_after = retry_after  # seconds, if the endpoint named them


class Endpoint:
    """One URL to send requests to. Connects on the first request, and is safe to share between threads."""

    def __init__(
        self,
        path: str,
        *,
        what: str,
        api_key: str,
        base_url: str,
        url_setting: str = "openai_base_url",
        key_setting: str = "openai_api_key",
        first_pause: float = 0.5,
    ) -> None:
        """Check the address and the key; `what` and the two settings are named in error messages. Raises: Invalid."""
        self._settings = {"url": url_setting, "key": key_setting}
        self._url, self.host = self._build_url(base_url or DEFAULT_BASE_URL, path)
        self._headers = {"Authorization": f"Bearer {check_key(api_key, key_setting)}"} if api_key.strip() else {}
        self.named = f"The {what} at {self.host}"  # the subject of error messages
        self._first_pause = first_pause
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def ask(self, question: Json, patience: Patience, *, max_bytes: int = MAX_ANSWER_BYTES) -> bytes:
        """Send a request, with retries, and return the body of the answer. Raises: EndpointRefusal, ModelError."""
        deadline = time.monotonic() + patience.total
        for attempt in range(patience.retries + 1):
            # Exponential backoff with jitter.
            pause = min(self._first_pause * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5)
            try:
                return self._post(question, min(patience.seconds, max(deadline - time.monotonic(), 0.001)), max_bytes)
            except EndpointRefusal as refusal:
                retry_after = refusal.retry_after or 0.0
                if refusal.status not in BUSY or retry_after > LONGEST_PAUSE:
                    raise
                failure: Exception = refusal
                pause = max(pause, retry_after)
            except httpx2.RequestError as error:
                failure = ModelError(f"{self.named} {_describe_failure(error)}.")
                failure.__cause__ = error
            if attempt == patience.retries or time.monotonic() + pause >= deadline:
                raise failure
            time.sleep(pause)
        raise AssertionError("the last attempt answers or raises")

    def explain(self, refusal: EndpointRefusal) -> ModelError:
        """Describe the refusal in a sentence that says what to check."""
        status = refusal.status
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            final = f"set {self._settings['url']} to the final address"
            return ModelError(f"{self.named} answered with a redirect, which is not followed; {final}.")
        advice = ADVICE.get(status, "").format(**self._settings)
        kind = ModelRefused if status in ABOUT_THE_TEXT else ModelError
        return kind(f"{self.named} answered with status {status}{advice}.")

    def _post(self, question: Json, seconds: float, max_bytes: int) -> bytes:
        """Raises: EndpointRefusal, ModelError, httpx2.RequestError."""
        deadline = time.monotonic() + seconds
        with self._get_client().stream(
            "POST", self._url, json=question, headers=self._headers, timeout=seconds, follow_redirects=False
        ) as response:
            if response.status_code != HTTPStatus.OK:
                raise EndpointRefusal(response.status_code, read_retry_after(response.headers))
            answer = bytearray()
            for part in response.iter_bytes():
                answer += part
                if len(answer) > max_bytes:
                    raise ModelError(f"{self.named} sent an answer that is too long.")
                # The client's own timeout restarts with every part.
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer came too slowly")
            return bytes(answer)

    def _get_client(self) -> httpx2.Client:
        """Return the client shared by all threads, so that connections are reused; it closes with this endpoint."""
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(verify=load_certificates())
                weakref.finalize(self, self._client.close).atexit = False
            return self._client

    def _build_url(self, base_url: str, path: str) -> tuple[str, str]:
        """Return the full URL below a base URL, and the host for messages."""
        key = self._settings["key"]
        parts = check_address(base_url, self._settings["url"], key=key, example=DEFAULT_BASE_URL)
        url = urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}", parts.query, ""))
        return url, f"{parts.hostname}" if parts.port is None else f"{parts.hostname}:{parts.port}"


def check_address(url: str, name: str, *, key: str, example: str) -> SplitResult:
    """Validate the address of a server; `name` and `key` are named in messages. Raises: Invalid."""
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.scheme in ("http", "https") and (parts.port or 1) > 0
    except (ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise Invalid(f"{name} is an address such as {example}.")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"{name} must not hold a name or password; the key belongs in {key}.")
    return parts


def check_key(api_key: str, name: str) -> str:
    """Validate a key; `name` is named in messages. Raises: Invalid."""
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise Invalid(f"{name} contains characters that are not allowed in a key; copy it again.")
    return key


@cache
def load_certificates() -> ssl.SSLContext:
    """Load the trusted certificates once: this takes longer than the rest of opening a client."""
    return httpx2.create_ssl_context()


def _describe_failure(error: httpx2.RequestError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "did not answer in time"
    return "cannot be reached" if isinstance(error, httpx2.TransportError) else "sent an answer that cannot be read"


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait: a number, or a date relative to the server's own clock.

    >>> read_retry_after({"retry-after": "1.5"})
    1.5
    >>> read_retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:09 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"})
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
