"""A deadline for each request, which also ends when its client hangs up.

The work of a request runs in threads and checks its deadline as it goes (see `recollect.deadline`). Nobody listens for
the client while a request is quick: whether it has gone is asked once the work has taken a moment.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.deadline import DEADLINE, Deadline
from recollect.server.headers import header
from recollect.settings import Settings

LONG_ROUTES = frozenset({"/api/import", "/api/export", "/admin/import", "/admin/export"})

AGENT_ROUTES = "/agent/"
MOMENT = 0.25
"""Seconds after which somebody listens whether the client is still there."""


class Deadlines:
    """Sets the deadline of every request. The time to send its body does not count."""

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
    """Listens for the client of one request, without taking anything from the application that reads its body."""

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
        """Return what comes next, to the application."""
        if self._unread is not None:
            message, self._unread = self._unread, None
            return message
        self._has_body = True  # as far as the application knows
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.deadline.cancel()
        elif not message.get("more_body"):
            self._is_whole = True
            self.deadline.restart()
        return message

    def end(self) -> None:
        """Stop listening."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        if self._has_body and not self._is_whole:  # it is the application's to read
            self._timer = loop.call_later(MOMENT, self._begin)
        else:
            self._task = loop.create_task(self._listen())

    async def _listen(self) -> None:
        if not self._is_whole:  # an empty body, which the application may still ask for
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
