"""Limits: requests per second for each key, and concurrent requests for the whole server.

Excess requests are refused within microseconds, with the time to try again, instead of being queued.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.server.http.errors import error_response

MAX_BUCKETS = 10_000
RETRY_AFTER = 1
HEALTH = "/health"
START = "http.response.start"
SPARE = 8
"""Extra slots for `GET /health`: a monitor must not mistake a busy server for a dead one."""

HEALTH_WITHIN = 0.4
"""Seconds within which `GET /health` answers, whatever the store does."""

OVERLOADED = "The server is handling as many requests as it can; try again in a moment."
MAX_UNREAD_BYTES = 128 * 1024 * 1024
"""Bytes of unread answers held in memory; one tenant may hold half of them."""

PIECE_BYTES = 64 * 1024
"""Answers are sent in pieces: the connection accepts the next when most of the earlier ones were read."""

NO_KEY_HOLDER = ""
"""Holder of all requests without a key; the others are counted by tenant."""

REPORT_SECONDS = 60.0

log = logging.getLogger("recollect.server")


class Buckets:
    """A token bucket for each key: `rate` a second on average, `burst` at once. A rate of 0 sets no limit."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._filled: dict[str, tuple[float, float]] = {}  # tokens, and the time they were counted

    def take(self, key: str) -> float:
        """Take a token; return the seconds to wait if there is none."""
        if not self._rate:
            return 0.0
        tokens, now = self._tokens(key)
        if len(self._filled) >= MAX_BUCKETS:
            self._make_room(now)
        if tokens < 1:
            self._filled[key] = (tokens, now)
            return (1 - tokens) / self._rate
        self._filled[key] = (tokens - 1, now)
        return 0.0

    def is_empty(self, key: str) -> bool:
        """Return True if the next `take` would have to wait."""
        return bool(self._rate) and self._tokens(key)[0] < 1

    def _tokens(self, key: str) -> tuple[float, float]:
        now = asyncio.get_running_loop().time()
        tokens, then = self._filled.get(key, (self._burst, now))
        return min(self._burst, tokens + (now - then) * self._rate), now

    def _make_room(self, now: float) -> None:
        self._filled = {each: filled for each, filled in self._filled.items() if not self._is_full(filled, now)}
        # Nearly all are in use: start over, or every request would scan them.
        if len(self._filled) >= MAX_BUCKETS // 2:
            self._filled.clear()

    def _is_full(self, filled: tuple[float, float], now: float) -> bool:
        return filled[0] + (now - filled[1]) * self._rate >= self._burst


class RefusalLog:
    """Logs refusals, at most one line in `REPORT_SECONDS`, with their number and the address of the last one."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._count = 0
        self._quiet_until = 0.0

    def add(self, address: str) -> None:
        """Count a refusal, and log it if nothing was logged lately."""
        self._count += 1
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            log.warning(self._line, self._count, address)
            self._count, self._quiet_until = 0, now + REPORT_SECONDS


class RequestLimit:
    """Limits concurrent requests and unread answers; excess requests get 503 with Retry-After.

    A request holds a slot while the server works on it, not while its client sends the body or reads the answer. One
    tenant gets at most three quarters of the slots and requests without a key a quarter, so neither shuts the others
    out. While too many bytes of answers are unread, by all clients or by one tenant's, new requests are refused, and so
    are finished ones that only read.
    """

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most
        self._held: Counter[str] = Counter()  # by tenant; changed only on the event loop's thread
        self._unread: Counter[str | None] = Counter()  # bytes, by tenant
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        holder: str | None = scope["state"]["holder"]
        is_health = scope["path"] == HEALTH
        if self._is_full(holder, spare=SPARE if is_health else 0) or (self._is_unread(holder) and not is_health):
            await _refuse(scope, receive, send)
            return
        is_whole = is_refused = False

        async def receive_outside() -> Message:
            nonlocal is_whole
            # The body is complete: this waits for the client to leave, and must not free the slot.
            if is_whole:
                return await receive()
            self._add(holder, -1)
            try:
                message = await receive()
            finally:
                self._add(holder, 1)
            is_whole = not message.get("more_body")
            return message

        async def send_outside(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            size = len(message.get("body", b""))
            self._add(holder, -1)
            self._unread[holder] += size
            try:
                # Many answers may be ready before the first is read. Writes are never refused here: their clients
                # must learn that they succeeded.
                if message["type"] == START and scope["method"] == "GET" and self._is_unread(holder) and not is_health:
                    is_refused = True
                    await _refuse(scope, receive, send)
                else:
                    await _send_in_pieces(message, send)
            finally:
                self._add(holder, 1)
                self._unread[holder] -= size
                if not self._unread[holder]:
                    del self._unread[holder]

        self._add(holder, 1)
        try:
            await self._app(scope, receive_outside, send_outside)
        finally:
            self._add(holder, -1)

    def _is_full(self, holder: str | None, *, spare: int) -> bool:
        """Return True if this holder may start no further request; None (the operator) has no share to keep to."""
        if self.count >= self._most + spare:
            return True
        if holder is None:
            return False
        share = self._most // 4 if holder == NO_KEY_HOLDER else self._most * 3 // 4
        return self._held[holder] >= max(share, 1) + spare

    def _is_unread(self, holder: str | None) -> bool:
        """Return True if too many bytes of answers are unread, by all clients or by this holder's."""
        share = MAX_UNREAD_BYTES // (1 if holder is None else 2)
        # Count at most the share of each holder, so that one tenant's excess does not block the others.
        waiting = sum(min(size, share) for size in self._unread.values())
        return waiting >= MAX_UNREAD_BYTES or self._unread[holder] >= share

    def _add(self, holder: str | None, change: int) -> None:
        self.count += change
        if holder is not None:
            self._held[holder] += change
            if not self._held[holder]:
                del self._held[holder]


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    scope["state"]["refused"] = "load"
    refusal = error_response(503, OVERLOADED, "overloaded", headers={"Retry-After": str(RETRY_AFTER)})
    await refusal(scope, receive, send)


async def _send_in_pieces(message: Message, send: Send) -> None:
    """Send a message in pieces and wait for the client between them; the connection would buffer it all at once."""
    body: bytes = message.get("body", b"")
    for begin in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
        await send({**message, "body": body[begin : begin + PIECE_BYTES], "more_body": True})
    # The last piece, which may be the whole body, keeps the `more_body` of the message.
    rest = (len(body) - 1) // PIECE_BYTES * PIECE_BYTES
    await send({**message, "body": body[rest:]} if rest > 0 else message)
