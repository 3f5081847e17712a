"""Guards against requests from foreign web pages and against large or slow bodies.

A foreign page can make a browser send requests to 127.0.0.1 and, by pointing its own name there (DNS rebinding), even
read the answers. The first shows in the Origin header, the second in the Host header; a page can forge neither.
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
from recollect.server.http.errors import error_response
from recollect.server.http.headers import header
from recollect.server.http.limits import OVERLOADED, RETRY_AFTER
from recollect.server.threads import BodyReader

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Addresses of all interfaces. With them, any IP address is accepted as Host, because DNS rebinding needs a name."""

TWO_HOSTS = "The request has more than one Host header; send it once."

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024**3
FILE_ROUTES = frozenset({"/api/import", "/admin/import"})
"""Routes that write the body to disk as it arrives. It may be large and slow as long as data keeps arriving."""

MAX_FORM_BYTES = 2 * 1024 * 1024
"""Limit for percent-encoded forms, as the console sends: decoding them is slow. A field may have 1 MiB."""

MAX_BODY_PARTS = 50_000
"""Brackets and commas of a body outside strings; they determine the memory the parsed body takes."""

TOO_MANY_VALUES = f"The body holds too many values; at most {MAX_BODY_PARTS:,} brackets and commas are accepted."
URLENCODED = b"application/x-www-form-urlencoded"
FORMS = (b"multipart/form-data", URLENCODED)
CHARSETS = (b"utf-8", b"utf8", b"us-ascii")
CLOSE = {"Connection": "close"}

MAX_DISCARDED_BYTES = 8 * MAX_BODY_BYTES
MAX_DISCARD_SECONDS = 5.0
"""Limits for reading a refused body to its end, so that the client gets to read the answer."""

MAX_BODY_SECONDS = 60.0
MAX_OPEN_BYTES = 4 * 1024
MAX_OPEN_SECONDS = 5.0
"""Limits of the body for requests without a key or to public routes, where only logins are sent."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of bodies that all current requests may hold in memory; one tenant may hold half of them."""


class HostGuard:
    """Refuses requests with a foreign Host or Origin header."""

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


class BodyLimit:
    """Refuses bodies that are too large, arrive too slowly, or find too many others in memory.

    A body with a declared length is refused at once, others while they arrive.
    """

    def __init__(self, app: ASGIApp, reader: BodyReader) -> None:
        self._app = app
        self._reader = reader
        self._held: Counter[str | None] = Counter()  # bytes, by tenant; changed only on the event loop's thread

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
            # A client that waits for 100 Continue has sent nothing yet.
            if expected.lower() != "100-continue":
                await _discard(receive)
            await refusal(scope, receive, send)
            return
        received, is_whole, pieces = 0, False, list[bytes]()
        deadline = asyncio.get_running_loop().time() + seconds

        async def receive_limited() -> Message:
            nonlocal received, is_whole
            # Nothing but the client's disconnect can follow, so there is no time limit.
            if is_whole:
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
        """Count the bytes of a body.

        Raises: HTTPException when there is no room for them.
        """
        self._held[holder] += size
        if self._held.total() > MAX_HELD_BYTES or self._held[holder] > MAX_HELD_BYTES // (1 if holder is None else 2):
            raise HTTPException(503, OVERLOADED, headers={"Retry-After": str(RETRY_AFTER), **CLOSE})


def _refusal(scope: Scope, most: int, kind: bytes, parameters: Mapping[bytes, bytes]) -> JSONResponse | None:
    """Return the refusal of a body that can be refused by its headers, or None."""
    length = header(scope, b"content-length") or ""
    if length.isdecimal() and int(length[:20]) > most:
        return error_response(413, _too_large(most), headers=CLOSE)
    charset = parameters.get(b"charset", b"utf-8").lower()
    # The framework would decode with any codec Python has.
    if kind in FORMS and charset not in CHARSETS:
        return error_response(400, "Send the form in UTF-8; other charsets are not supported.", headers=CLOSE)
    return None


def _too_large(most: int) -> str:
    amount = f"{most // 1024**2:,} MiB" if most >= 1024**2 else f"{most // 1024} KiB without a key"
    return f"The body is too large; at most {amount} are accepted."


def _too_slow(seconds: float) -> str:
    return f"The body did not arrive within {seconds:g} seconds."


async def _discard(receive: Receive) -> None:
    """Read the rest of a body, within limits: closing the connection while the client sends would lose the answer."""
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
