"""Steps that every request passes first: its id and metrics, the check of its Host and Origin, and its deadline.

A foreign page can make a browser send requests to 127.0.0.1 and, by pointing its own name there (DNS rebinding), even
read the answers. The first shows in the Origin header, the second in the Host header; a page can forge neither.

Routes run in threads and check their deadline as they go (see `wellkept.deadline`). It also ends when the client hangs
up; the connection is watched only for requests that take longer than `MOMENT`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.agent.prompt import RUN_SECONDS
from wellkept.deadline import DEADLINE, Deadline
from wellkept.meter import METER
from wellkept.server.http.errors import METHODS, error_response
from wellkept.server.http.metrics import Metrics
from wellkept.server.http.routing import SCOPE, TRANSFER, Route, has_body, has_json, header, is_console
from wellkept.settings import Settings

Headers = Iterable[tuple[bytes, bytes]]

PROTECTION: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers that keep answers out of caches and browsers from guessing their type."""

UNKNOWN = "(unknown)"
"""Label of requests that match no route."""

IDEMPOTENCY_KEY = b"idempotency-key"
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Addresses of all interfaces. With them, any IP address is accepted as Host, because DNS rebinding needs a name."""

TWO_HOSTS = "The request has more than one Host header; send it once."

LONGER = 60
"""Imports, exports and backups may take so many times as long as other requests."""

AGENT_ROUTES = "/agent/"
MOMENT = 0.25
"""Seconds after which the connection of a request is watched."""


def add_protection(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, with those of `PROTECTION` that it lacks.

    >>> add_protection([(b"cache-control", b"max-age=3600")])
    [(b'cache-control', b'max-age=3600'), (b'x-content-type-options', b'nosniff')]
    """
    existing = list(headers)
    names = {name.lower() for name, _ in existing}
    return existing + [each for each in PROTECTION if each[0] not in names]


HEADER = "X-Request-Id"
_NAME = HEADER.lower().encode()
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logging.getLogger("wellkept.server")


class RequestMiddleware:
    """Outermost middleware: gives each request an id, counts and times it, and answers 500 to unexpected errors.

    The id links an answer to its lines in the log.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # White space around a value is not part of it (RFC 9110, 5.5), but the parser keeps what follows.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        sent_id = header(scope, _NAME) or ""
        request_id = sent_id if _ACCEPTABLE.fullmatch(sent_id) else os.urandom(8).hex()
        scope.setdefault("state", {})["request_id"] = request_id
        clock, status, has_started = asyncio.get_running_loop().time, 500, False
        started_at = clock()

        async def send_with_id(message: Message) -> None:
            nonlocal has_started, status
            if message["type"] == "http.response.start":
                has_started = True
                status = message["status"]
                message["headers"] = [*add_protection(message.get("headers", ())), (_NAME, request_id.encode())]
            await send(message)

        self._metrics.under_way.inc()
        token, request = METER.set(self._metrics), SCOPE.set(scope)
        try:
            await self._app(scope, receive, send_with_id)
        # No other middleware can answer: log unexpected errors here.
        except Exception:
            log.exception("%s %s broke (request %s)", scope["method"], scope["path"], request_id)
            if has_started:
                raise
            sentence = f"Something went wrong here; the server's log has it under {request_id}."
            await error_response(500, sentence)(scope, receive, send_with_id)
        finally:
            METER.reset(token)
            SCOPE.reset(request)
            self._metrics.under_way.dec()
            self._count(scope, status, clock() - started_at)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        method = scope["method"] if scope["method"] in METHODS else "other"
        # The path has the names of parameters, never their values.
        path = state["route"].path if "route" in state else UNKNOWN
        self._metrics.requests.labels(method, path, str(status)).inc()
        self._metrics.seconds.labels(method, path).observe(seconds)
        if "refused" in state:
            self._metrics.refused.labels(state["refused"]).inc()


def serve_http(guarded: ASGIApp, app: ASGIApp) -> ASGIApp:
    """Lead requests through what guards `app`, which gets start and end itself. Other protocols are not served."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "lifespan"):
            await (guarded if scope["type"] == "http" else app)(scope, receive, send)

    return serve


def detour(app: ASGIApp, *, when: Callable[[Scope], bool], through: ASGIApp) -> ASGIApp:
    """Lead some requests through a middleware which the others do not pass."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        await (through if when(scope) else app)(scope, receive, send)

    return choose


def leads_to_console(scope: Scope) -> bool:
    return is_console(scope["path"])


def has_idempotency_key(scope: Scope) -> bool:
    """Return True if the request is to be executed once: a POST of JSON, or without a body, with the header."""
    has_key = scope["method"] == "POST" and header(scope, IDEMPOTENCY_KEY) is not None
    return has_key and (has_json(scope) or not has_body(scope))


class HostGuard:
    """Refuses requests with a foreign Host or Origin header."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = LOOPBACK_HOSTS.union(host.lower().strip("[]") for host in hosts)
        self._is_everywhere = not self._hosts.isdisjoint(EVERYWHERE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await error_response(400 if refusal is TWO_HOSTS else 403, refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        # A proxy may have checked the other one.
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            return TWO_HOSTS
        host = (header(scope, b"host") or "").lower()
        name = host_name(host)
        if name not in self._hosts and not (self._is_everywhere and is_address(name)):
            return (
                "This server does not answer to that Host name; use the address it was started on, "
                "or start it with --public-host and this name."
            )
        origin = header(scope, b"origin")
        if origin is not None and _parse_origin(origin) != host:
            return "Requests from web pages of another origin are refused."
        return None


# Nearly all requests have the same Host.
@lru_cache(maxsize=256)
def host_name(host: str) -> str:
    """Return a Host header without its port; empty if it is invalid.

    >>> host_name("localhost:8077"), host_name("[::1]:8077"), host_name("127.0.0.1"), host_name("a@b:c")
    ('localhost', '::1', '127.0.0.1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        # Raises ValueError if it is not a number.
        _ = parts.port
    except ValueError:
        return ""
    return parts.hostname or "" if parts.netloc == host and "@" not in host else ""


def is_address(name: str) -> bool:
    """Return True if a host name is an IP address.

    >>> is_address("192.168.1.7"), is_address("fe80::1"), is_address("evil.example")
    (True, True, False)
    """
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _parse_origin(origin: str) -> str:
    """Return the `host:port` of an Origin header; empty for "null"."""
    try:
        return urlsplit(origin.lower()).netloc
    except ValueError:
        return ""


class DeadlineMiddleware:
    """Sets the deadline of each request. The time to receive its body does not count."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = _Watch(scope, receive, Deadline(self._seconds(scope)))
        token = DEADLINE.set(watch.deadline)
        try:
            await self._app(scope, watch.receive, send)
        finally:
            watch.end()
            DEADLINE.reset(token)

    def _seconds(self, scope: Scope) -> float:
        route: Route = scope["state"]["route"]
        if route.path.startswith(AGENT_ROUTES):
            return RUN_SECONDS + self._settings.request_timeout
        return self._settings.request_timeout * (LONGER if route.queue == TRANSFER else 1)


class _Watch:
    """Watches the connection of one request, once its body is complete."""

    def __init__(self, scope: Scope, receive: Receive, deadline: Deadline) -> None:
        self.deadline = deadline
        self._receive = receive
        self._is_whole = False
        self._unread: Message | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if not has_body(scope):
            self._begin()

    async def receive(self) -> Message:
        """Return the next message to the application."""
        if self._unread is not None:
            message, self._unread = self._unread, None
            return message
        # The application waits for a body, whatever the headers announced.
        if self._timer is not None and not self._is_whole:
            self._timer.cancel()
            self._timer = None
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.deadline.cancel()
        elif not message.get("more_body"):
            self._is_whole = True
            self.deadline.restart()
            self._begin()
        return message

    def end(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(MOMENT, lambda: setattr(self, "_task", loop.create_task(self._listen())))

    async def _listen(self) -> None:
        message = await self._receive()
        if not self._is_whole and message["type"] == "http.request":
            # Keep the empty body for the application, which may still read it.
            self._is_whole, self._unread = True, message
            message = await self._receive()
        while message["type"] != "http.disconnect":
            message = await self._receive()
        self.deadline.cancel()
