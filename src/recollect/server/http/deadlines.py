"""Deadlines of requests, which also end when the client hangs up.

Routes run in threads and check their deadline as they go (see `recollect.deadline`). The connection is watched only
for requests that take longer than `MOMENT`.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.deadline import DEADLINE, Deadline
from recollect.server.http.headers import header
from recollect.settings import Settings

LONG_ROUTES = frozenset({"/api/import", "/api/export", "/admin/import", "/admin/export"})

AGENT_ROUTES = "/agent/"
MOMENT = 0.25
"""Seconds after which the connection of a request is watched."""


class DeadlineMiddleware:
    """Sets the deadline of each request. The time to receive its body does not count."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watch = _Watch(scope, receive, Deadline(self._seconds(scope["path"])))
        token = DEADLINE.set(watch.deadline)
        try:
            await self._app(scope, watch.receive, send)
        finally:
            watch.end()
            DEADLINE.reset(token)

    def _seconds(self, path: str) -> float:
        if path.startswith(AGENT_ROUTES):
            return self._settings.agent_timeout + self._settings.request_timeout
        return self._settings.transfer_timeout if path in LONG_ROUTES else self._settings.request_timeout


class _Watch:
    """Watches the connection of one request without consuming the body the application reads."""

    def __init__(self, scope: Scope, receive: Receive, deadline: Deadline) -> None:
        self.deadline = deadline
        self._receive = receive
        self._has_body = header(scope, b"content-length") not in (None, "0") or bool(
            header(scope, b"transfer-encoding")
        )
        self._is_whole = False
        self._unread: Message | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(MOMENT, self._begin)

    async def receive(self) -> Message:
        """Return the next message to the application."""
        if self._unread is not None:
            message, self._unread = self._unread, None
            return message
        # The application waits for a body, whatever the headers announced.
        self._has_body = True
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.deadline.cancel()
        elif not message.get("more_body"):
            self._is_whole = True
            self.deadline.restart()
        return message

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        # Do not consume a body that the application has yet to read.
        if self._has_body and not self._is_whole:
            self._timer = loop.call_later(MOMENT, self._begin)
        else:
            self._task = loop.create_task(self._listen())

    async def _listen(self) -> None:
        # Keep the empty body for the application, which may still read it.
        if not self._is_whole:
            message = await self._receive()
            self._is_whole = True
            if message["type"] == "http.request":
                self._unread = message
            else:
                self.deadline.cancel()
                return
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.deadline.cancel()
