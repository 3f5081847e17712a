"""Request ids, metrics, and the headers that all answers have in common."""

from __future__ import annotations

import asyncio
import logging
import os
import re

from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.server.http.errors import METHODS, error_response
from recollect.server.http.headers import add_protection, header
from recollect.server.http.metrics import Metrics
from recollect.server.http.routing import UNKNOWN

HEADER = "X-Request-Id"
_NAME = HEADER.lower().encode()
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logging.getLogger("recollect.server")


class RequestMiddleware:
    """Outermost middleware: gives each request an id, counts and times it, and answers 500 to unexpected errors.

    The id links an answer to its lines in the log.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._counters: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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
            self._metrics.under_way.dec()
            self._count(scope, status, clock() - started_at)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        method = scope["method"] if scope["method"] in METHODS else "other"
        key = method, state.get("route", UNKNOWN).path, status
        # Looking a counter up takes longer than counting.
        found = self._counters.get(key)
        if found is None:
            found = self._counters[key] = (
                self._metrics.requests.labels(method, key[1], str(status)),
                self._metrics.seconds.labels(method, key[1]),
            )
        requests, histogram = found
        requests.inc()
        histogram.observe(seconds)
        if "refused" in state:
            self._metrics.refused.labels(state["refused"]).inc()
