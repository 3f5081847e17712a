"""Against too much at once: so many requests a second for each key, so many under way for the whole server.

What exceeds either is refused in microseconds, with the time to try again, instead of being queued until everybody
waits.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.server.errors import error_response

MAX_BUCKETS = 10_000
RETRY_AFTER = 1
HEALTH = "/health"
SPARE = 8
"""Places that only those who ask for the server's health are given: whoever watches it must not take busy for dead."""

HEALTH_WITHIN = 0.4
"""Seconds in which those are answered, whatever the store does."""

OVERLOADED = "The server has as many requests under way as it can handle; try again in a moment."


class Buckets:
    """A token bucket for each key: `rate` a second on average, `burst` at once. A rate of 0 sets no limit."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._filled: dict[str, tuple[float, float]] = {}  # tokens, and when there were so many

    def take(self, key: str) -> float:
        """Take a token; the seconds to wait if there is none."""
        if not self._rate:
            return 0.0
        now = asyncio.get_running_loop().time()
        tokens, then = self._filled.get(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        if len(self._filled) >= MAX_BUCKETS:
            self._filled = {each: filled for each, filled in self._filled.items() if not self._is_full(filled, now)}
        if tokens < 1:
            self._filled[key] = (tokens, now)
            return (1 - tokens) / self._rate
        self._filled[key] = (tokens - 1, now)
        return 0.0

    def _is_full(self, filled: tuple[float, float], now: float) -> bool:
        return filled[0] + (now - filled[1]) * self._rate >= self._burst


class InFlight:
    """Lets so many requests in at a time; the rest is told to come back."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self.count >= self._most + (SPARE if scope["path"] == HEALTH else 0):
            scope.setdefault("state", {})["refused"] = "load"
            refusal = error_response(503, OVERLOADED, "overloaded", headers={"Retry-After": str(RETRY_AFTER)})
            await refusal(scope, receive, send)
            return
        self.count += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.count -= 1
