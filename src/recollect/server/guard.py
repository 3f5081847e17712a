"""Two guards in front of the routes: against web pages that reach for this server, and against huge bodies.

A page from elsewhere can make a browser send requests to 127.0.0.1, and by pointing its own name there (DNS rebinding)
even read the answers. The first shows in the Origin header, the second in the Host header; neither can be forged by
the page.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from python_multipart.multipart import parse_options_header
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.policy.json_values import has_too_many_values
from recollect.server.errors import error_response
from recollect.server.headers import header
from recollect.server.limits import OVERLOADED, RETRY_AFTER
from recollect.server.threads import BodyReader

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Who listens there is reached by any address of the machine. A page can point a name at us, not a number."""

TWO_HOSTS = "The request names more than one Host; send the header once."

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024**3
FILE_ROUTES = frozenset({"/api/import", "/admin/import"})
"""Routes that write what they are sent to disk as it arrives. It may be large and take long, as long as it moves."""

MAX_FORM_BYTES = 2 * 1024 * 1024
"""A percent-encoded form, as the console sends them, is decoded slowly. The framework takes 1 MiB a field."""

MAX_BODY_PARTS = 50_000
"""Brackets and commas of a body outside of strings: what it takes in memory once it is parsed goes by them."""

TOO_MANY_VALUES = f"The body holds too many values; at most {MAX_BODY_PARTS:,} brackets and commas are accepted."
URLENCODED = b"application/x-www-form-urlencoded"
FORMS = (b"multipart/form-data", URLENCODED)
CHARSETS = (b"utf-8", b"utf8", b"us-ascii")
CLOSE = {"Connection": "close"}

MAX_DISCARDED_BYTES = 8 * MAX_BODY_BYTES
MAX_DISCARD_SECONDS = 5.0
MAX_BODY_SECONDS = 60.0
MAX_OPEN_BYTES = 4 * 1024
MAX_OPEN_SECONDS = 5.0
"""The same for a request without a key, or to a route that takes none: a login is all that is sent there."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of bodies that all requests under way may hold in memory; those of one tenant half of it."""


class HostGuard:
    """Answers only requests addressed to one of our names, and none that a page from elsewhere makes."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = LOOPBACK_HOSTS.union(host.lower().strip("[]") for host in hosts)
        self._is_everywhere = not self._hosts.isdisjoint(EVERYWHERE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await error_response(400 if refusal is TWO_HOSTS else 403, refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:  # a proxy may have gone by the other one
            return TWO_HOSTS
        host = (header(scope, b"host") or "").lower()
        name = host_name(host)
        if name not in self._hosts and not (self._is_everywhere and is_address(name)):
            return (
                "This server does not answer to that Host name; use the address it was started on, "
                "or name this one when starting it: --public-host."
            )
        origin = header(scope, b"origin")
        if origin is not None and _place(origin) != host:
            return "A web page from another origin may ask nothing here."
        return None


@lru_cache(maxsize=256)  # nearly all requests name the same one
def host_name(host: str) -> str:
    """A Host header without its port; empty when it is not one.

    >>> host_name("localhost:8077"), host_name("[::1]:8077"), host_name("127.0.0.1"), host_name("a@b:c")
    ('localhost', '::1', '127.0.0.1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises when it is no number
    except ValueError:
        return ""
    return parts.hostname or "" if parts.netloc == host and "@" not in host else ""


def is_address(name: str) -> bool:
    """
    >>> is_address("192.168.1.7"), is_address("fe80::1"), is_address("evil.example")
    (True, True, False)
    """
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _place(origin: str) -> str:
    """The `host:port` of an Origin header; empty for "null"."""
    try:
        return urlsplit(origin.lower()).netloc
    except ValueError:
        return ""


class BodyLimit:
    """Refuses bodies over `MAX_BODY_BYTES` (files: `MAX_FILE_BYTES`), by their declared length at once, otherwise while
    they arrive; those that take too long to; and, for a while, those that find too many others in memory."""

    def __init__(self, app: ASGIApp, reader: BodyReader) -> None:
        self._app = app
        self._reader = reader
        self._held: Counter[str | None] = Counter()  # bytes, by tenant; only the event loop's thread counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope["state"]
        is_file, is_open, holder = scope["path"] in FILE_ROUTES, state["is_open"], state["holder"]
        kind, parameters = parse_options_header(header(scope, b"content-type"))
        is_read_whole = not (is_file or kind.startswith(b"multipart/"))
        most = MAX_OPEN_BYTES if is_open else MAX_FILE_BYTES if is_file else MAX_BODY_BYTES
        most = min(most, MAX_FORM_BYTES) if kind == URLENCODED else most
        seconds = MAX_OPEN_SECONDS if is_open else MAX_BODY_SECONDS
        refusal = _refusal(scope, most, kind, parameters)
        if refusal is not None:
            expected = header(scope, b"expect") or ""
            if expected.lower() != "100-continue":  # who waits for a go-ahead has sent nothing yet
                await _discard(receive)
            await refusal(scope, receive, send)
            return
        received, is_whole, pieces = 0, False, list[bytes]()
        deadline = asyncio.get_running_loop().time() + seconds

        async def receive_limited() -> Message:
            nonlocal received, is_whole
            if is_whole:  # what comes now is only that the client has gone, and may take as long as it likes
                return await receive()
            try:
                async with asyncio.timeout(seconds) if is_file and not is_open else asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, _too_slow(seconds), headers=CLOSE) from None
            piece = message.get("body", b"")
            received += len(piece)
            if is_read_whole:
                pieces.append(piece)
            is_whole = not message.get("more_body")
            if received > most:
                if message.get("more_body"):
                    await _discard(receive)
                raise HTTPException(413, _too_large(most), headers=CLOSE)
            if not is_file:
                self._hold(holder, len(piece))
            if is_whole and is_read_whole:
                body = b"".join(pieces)
                pieces.clear()
                if await self._reader.read(body, partial(has_too_many_values, body, MAX_BODY_PARTS)):
                    raise HTTPException(413, TOO_MANY_VALUES)
            return message

        try:
            await self._app(scope, receive_limited, send)
        finally:
            if not is_file:
                self._held[holder] -= received
                if self._held[holder] <= 0:
                    del self._held[holder]

    def _hold(self, holder: str | None, size: int) -> None:
        """Raises: HTTPException when there is no room for it."""
        self._held[holder] += size
        if self._held.total() > MAX_HELD_BYTES or self._held[holder] > MAX_HELD_BYTES // (1 if holder is None else 2):
            raise HTTPException(503, OVERLOADED, headers={"Retry-After": str(RETRY_AFTER), **CLOSE})


def _refusal(scope: Scope, most: int, kind: bytes, parameters: Mapping[bytes, bytes]) -> JSONResponse | None:
    """Return the answer to a body that is refused before any of it has arrived."""
    length = header(scope, b"content-length") or ""
    if length.isdecimal() and int(length[:20]) > most:
        return error_response(413, _too_large(most), headers=CLOSE)
    charset = parameters.get(b"charset", b"utf-8").lower()
    if kind in FORMS and charset not in CHARSETS:  # the framework would decode by any codec Python has
        return error_response(400, "Send the form in UTF-8; other charsets are not understood.", headers=CLOSE)
    return None


def _too_large(most: int) -> str:
    amount = f"{most // 1024**2:,} MiB" if most >= 1024**2 else f"{most // 1024} KiB without a key"
    return f"The body is too large; at most {amount} are accepted."


def _too_slow(seconds: float) -> str:
    return f"The body did not arrive within {seconds:g} seconds."


async def _discard(receive: Receive) -> None:
    """Read on for a while: a connection closed while the client still sends loses the answer on its way."""
    discarded = 0
    try:
        async with asyncio.timeout(MAX_DISCARD_SECONDS):
            while discarded < MAX_DISCARDED_BYTES:
                message = await receive()
                discarded += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
    except TimeoutError:
        return
