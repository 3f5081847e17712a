"""Requests to a server: retries with backoff, and the two ways to run them.

A plan is a generator that yields requests and pauses and receives answers. It contains everything but input and output,
so the plain and the async connection share retries, pages and decoding.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from wellkept import errors
from wellkept.errors import (
    ERROR_DETAILS,
    ERROR_HEADER,
    Invalid,
    RequestInProgress,
    SecretRejected,
    StoreAway,
    StoreBusy,
    StoreError,
    TimedOut,
    WellkeptError,
    error_class,
)
from wellkept.model import Json
from wellkept.program import advise_install

# It is optional, and importing the class must say so only when a client is made.
HAS_HTTPX = find_spec("httpx2") is not None
if HAS_HTTPX:
    import httpx2

    from wellkept.providers import endpoint

T = TypeVar("T")
Plan = Generator["HttpRequest | float", Any, T]
"""Yields requests, whose answers or failures it receives, and seconds to wait; returns the result."""

HTTP_ERRORS: Mapping[str, type[WellkeptError]] = {
    **dict.fromkeys(("too_large", "unprocessable", "method_not_allowed"), Invalid),
    **dict.fromkeys(("rate_limited", "overloaded"), StoreBusy),
    "too_slow": TimedOut,
}
"""Exceptions for the codes of refusals that the library does not know."""

FIRST_PAUSE = 0.25
CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 100
GATEWAY = frozenset({502, 503, 504})
"""Status codes after which a request may succeed if a proxy, and not wellkept, answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request, the same for every try."""

    method: str
    path: str
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    content: bytes | None = None
    files: Mapping[str, Any] | None = None
    fields: Mapping[str, str] | None = None  # of the form with the files
    is_file: bool = False  # the answer is the content of a file
    is_repeatable: bool = False  # repeating it does no harm, even if the first one was executed


class ServerAddress:
    """Address and key of a server, and the patience with it. Never shows the key."""

    def __init__(self, url: str, key: str, *, timeout: float, retries: int) -> None:
        """Raises: Invalid, also when a package is missing."""
        if not HAS_HTTPX:
            raise Invalid(f"A client needs the package 'httpx2'; {advise_install('client')}")
        address = endpoint.check_address(url, "The address", key="`key`", example="http://127.0.0.1:8077")
        if retries < 0 or not timeout > 0:
            raise Invalid("`timeout` is a number of seconds above 0, `retries` a whole number from 0.")
        self.url = address.geturl().rstrip("/")
        self.retries = retries
        secret = endpoint.check_key(key, "`key`") if key.strip() else ""
        self._options: Json = {
            "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
            "timeout": httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            "limits": httpx2.Limits(max_connections=MAX_CONNECTIONS),
            "verify": endpoint.load_certificates(),
        }

    def open(self, kind: str) -> Any:
        """Open an `httpx2.Client` or `httpx2.AsyncClient`."""
        return getattr(httpx2, kind)(**self._options)

    def exchange(self, request: HttpRequest) -> Plan[Any]:
        """Send a request until it is answered or has failed too often; return the JSON of the answer.

        Every POST that writes has an Idempotency-Key, so that repeating it never writes twice. Raises: WellkeptError.
        """
        if request.method == "POST" and not request.is_repeatable:
            request = replace(request, headers={**request.headers, "Idempotency-Key": uuid4().hex})
        may_have_run = False
        for attempt in range(self.retries + 1):
            # Exponential backoff with jitter.
            pause = min(FIRST_PAUSE * 2**attempt, endpoint.LONGEST_PAUSE) * random.uniform(0.5, 1.5)
            outcome = yield request
            if isinstance(outcome, Exception):
                is_unsent = isinstance(outcome, httpx2.ConnectError | httpx2.ConnectTimeout)
                may_have_run = may_have_run or not is_unsent
                failure, can_retry = self._describe(outcome), is_unsent or request.method not in ("PATCH", "PUT")
                can_retry = can_retry and not isinstance(failure, TimedOut)
            else:
                # Deleted by an earlier try, whose answer was lost.
                is_gone = outcome.status_code == 404 and request.method == "DELETE" and may_have_run
                if outcome.is_success and request.is_file:
                    return outcome.content
                if outcome.is_success or is_gone:
                    return _read_json(outcome) if outcome.is_success and outcome.content else None
                failure, retry_after = _read_refusal(outcome)
                can_retry = retry_after is not None and retry_after <= endpoint.LONGEST_PAUSE
                pause = max(pause, retry_after or 0.0)
            if not can_retry or attempt == self.retries:
                raise failure
            yield pause
        raise AssertionError("the last attempt answers or raises")

    def _describe(self, error: Exception) -> WellkeptError:
        """Describe the failure of a connection in a sentence that says what to check."""
        is_late = isinstance(error, httpx2.TimeoutException)
        if is_late and not isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
            failure: WellkeptError = TimedOut(f"{self.url} did not answer in time; ask for less, or raise `timeout`.")
        else:
            failure = StoreAway(f"{self.url} cannot be reached; check the address, and that the server runs.")
        failure.__cause__ = error
        return failure


def _read_json(answer: Any) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise StoreError(_not_ours(answer)) from error


def _read_refusal(answer: Any) -> tuple[WellkeptError, float | None]:
    """Return the error of an answer, and the seconds to wait if a retry can help."""
    seconds, headers = endpoint.read_retry_after(answer.headers), answer.headers
    try:
        body, details = answer.json(), json.loads(headers.get(ERROR_HEADER, "{}"))
    except ValueError:
        body = details = None
    if not isinstance(body, dict) or "code" not in body or not isinstance(details, dict):
        return StoreError(_not_ours(answer)), (seconds or 0.0) if answer.status_code in GATEWAY | {429} else None
    error = _build_error(body, details, retry_after=seconds, request_id=headers.get("x-request-id", ""))
    is_busy = answer.status_code in (429, 503) or isinstance(error, RequestInProgress)
    return error, seconds if is_busy else None


def _build_error(body: Json, details: Json, *, retry_after: float | None, request_id: str) -> WellkeptError:
    """Rebuild the exception that a server answered with. A code of a newer server gives the base class."""
    code, named = str(body["code"]), getattr(errors, str(details.get("type", "")), None)
    is_named = isinstance(named, type) and issubclass(named, WellkeptError) and named.code == code
    found: Any = named if is_named else error_class(code) or HTTP_ERRORS.get(code, WellkeptError)
    # Constructors of our exceptions compose messages; this one is complete.
    error: Any = found.__new__(found, str(body.get("error", "")))
    blank = {"sentence": "", "rule": ""} if issubclass(found, SecretRejected) else {}
    given = {name: details[name] for name in ERROR_DETAILS if name in details}
    vars(error).update(blank | given, code=code, request_id=request_id)
    if retry_after is not None:
        error.retry_after = retry_after
    if request_id:
        error.add_note(f"The request has the id {request_id} in the server's log.")
    return error  # type: ignore[no-any-return]


def _not_ours(answer: Any) -> str:
    host = f"{answer.request.url.host}:{answer.request.url.port or answer.request.url.scheme}"
    return f"{host} answered with status {answer.status_code}, but not like a wellkept server; check the address."


class Connection(Protocol):
    """A pool of connections to one server that runs plans."""

    address: ServerAddress

    def run(self, plan: Plan[Any]) -> Any: ...


CLOSED = "The client is closed."


class PlainConnection:
    """Connections for threads."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._http = address.open("Client")

    def run(self, plan: Plan[T]) -> T:
        """Run a plan to its end. Raises: WellkeptError."""
        outcome: Any = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            outcome = self._take(step)

    def _take(self, step: HttpRequest | float) -> Any:
        if isinstance(step, float):
            time.sleep(step)
            return None
        if self._http.is_closed:
            raise StoreError(CLOSED)
        try:
            return self._http.request(step.method, self.address.url + step.path, **_options(step))
        except httpx2.RequestError as error:
            return error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


class AsyncConnection:
    """Connections for an event loop."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._http = address.open("AsyncClient")

    async def run(self, plan: Plan[T]) -> T:
        """Run a plan to its end. Raises: WellkeptError."""
        outcome: Any = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            outcome = await self._take(step)

    async def _take(self, step: HttpRequest | float) -> Any:
        if isinstance(step, float):
            await asyncio.sleep(step)
            return None
        if self._http.is_closed:
            raise StoreError(CLOSED)
        try:
            return await self._http.request(step.method, self.address.url + step.path, **_options(step))
        except httpx2.RequestError as error:
            return error

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def _options(request: HttpRequest) -> Json:
    options = {"headers": request.headers, "content": request.content, "files": request.files, "data": request.fields}
    return {name: value for name, value in options.items() if value is not None} | {"follow_redirects": False}
