"""Limits: concurrent requests, and the size and speed of bodies.

Excess requests are refused within microseconds, with the time to try again, instead of being queued.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from python_multipart.multipart import parse_options_header
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.language.values import has_too_many_values
from wellkept.server.http.errors import error_response
from wellkept.server.http.routing import FILE_ROUTES, header
from wellkept.server.threads import BodyReader

RETRY_AFTER = 1
HEALTH = "/health"
SPARE = 8
"""Extra slots for `GET /health`: a monitor must not mistake a busy server for a dead one."""

HEALTH_WITHIN = 0.4
"""Seconds within which `GET /health` answers, whatever the store does."""

OVERLOADED = "The server is handling as many requests as it can; try again in a moment."
PIECE_BYTES = 64 * 1024
"""Answers are sent in pieces: the connection accepts the next when most of the earlier ones were read."""

NO_KEY_HOLDER = ""
"""Holder of all requests without a key; the others are counted by tenant."""

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024**3
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


class RequestLimit:
    """Limits concurrent requests; excess requests get 503 with Retry-After.

    A request holds a slot until its answer is read, but not while its client sends the body. One tenant gets at most
    three quarters of the slots and requests without a key a quarter, so neither shuts the others out.
    """

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most
        self._held: Counter[str | None] = Counter()  # by tenant; changed only on the event loop's thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        holder: str | None = scope["state"]["holder"]
        if self._is_full(holder, spare=SPARE if scope["path"] == HEALTH else 0):
            scope["state"]["refused"] = "load"
            refusal = error_response(503, OVERLOADED, "overloaded", headers={"Retry-After": str(RETRY_AFTER)})
            await refusal(scope, receive, send)
            return
        is_whole = False

        async def receive_outside() -> Message:
            nonlocal is_whole
            # The body is complete: this waits for the client to leave, and must not free the slot.
            if is_whole:
                return await receive()
            self._held[holder] -= 1
            try:
                message = await receive()
            finally:
                self._held[holder] += 1
            is_whole = not message.get("more_body")
            return message

        self._held[holder] += 1
        try:
            await self._app(scope, receive_outside, partial(_send_in_pieces, send))
        finally:
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

    def _is_full(self, holder: str | None, *, spare: int) -> bool:
        """Return True if this holder may start no further request; None (the operator) has no share to keep to."""
        if holder is None:
            share = self._most
        else:
            share = max(self._most // 4 if holder == NO_KEY_HOLDER else self._most * 3 // 4, 1)
        return self._held.total() >= self._most + spare or self._held[holder] >= share + spare


async def _send_in_pieces(send: Send, message: Message) -> None:
    """Send a message in pieces and wait for the client between them; the connection would buffer it all at once."""
    body: bytes = message.get("body", b"")
    for begin in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
        await send({**message, "body": body[begin : begin + PIECE_BYTES], "more_body": True})
    # The last piece, which may be the whole body, keeps the `more_body` of the message.
    rest = (len(body) - 1) // PIECE_BYTES * PIECE_BYTES
    await send({**message, "body": body[rest:]} if rest > 0 else message)


class BodyLimit:
    """Refuses bodies that are too large, arrive too slowly, or find too many others in memory.

    A body with a declared length is refused at once, others while they arrive.
    """

    def __init__(self, app: ASGIApp, reader: BodyReader) -> None:
        self._app = app
        self._reader = reader
        self._held: Counter[str | None] = Counter()  # bytes, by tenant; changed only on the event loop's thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                sentence = f"The body did not arrive within {seconds:g} seconds."
                raise HTTPException(408, sentence, headers=CLOSE) from None
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
        """Count the bytes of a body. Raises: HTTPException when there is no room for them."""
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
