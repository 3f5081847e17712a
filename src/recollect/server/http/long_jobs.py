"""Queues for long jobs: one at a time for each tenant and kind.

Reading a document, exporting a tenant and maintenance take seconds of processor time and tens of megabytes. A second
job of the same tenant and kind waits for the first; other tenants do not. A request queues once its body is complete,
so a slow client blocks no other, and leaves the queue when its answer starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.deadline import DEADLINE
from recollect.server.http.errors import error_response
from recollect.server.http.headers import has_body

MAX_WAITING = 32
RETRY_AFTER = 5
FULL = f"Your tenant already has {MAX_WAITING} long requests of this kind waiting; try again when some are done."

KINDS: Mapping[str, str] = {
    "POST /api/kb/documents": "documents",
    "POST /api/import": "transfer",
    "POST /admin/import": "transfer",
    "GET /api/export": "transfer",
    "GET /admin/export": "transfer",
    "POST /api/erase": "upkeep",
    "POST /api/maintenance": "upkeep",
    "POST /api/secrets/scan": "upkeep",
    "GET /api/audit/verify": "upkeep",
    "GET /admin/audit/verify": "upkeep",
    "POST /api/agents/{agent}/consolidate": "upkeep",
    "POST /admin/agents/{agent}/proposals": "upkeep",
}
"""Kind of each long job, by its route."""

READING = ("GET", "HEAD")


class LongJobQueue:
    """Runs the long requests of a tenant one after the other. Not thread-safe: only the event loop uses it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._queues: dict[tuple[str, str], _Queue] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = _find_kind(scope) if scope["type"] == "http" else None
        access = scope["state"]["access"] if kind is not None else None
        if kind is None or access is None:
            await self._app(scope, receive, send)
            return
        name = (kind, access.tenant)
        queue = self._queues.setdefault(name, _Queue())
        if queue.waiting >= MAX_WAITING:
            refusal = error_response(429, FULL, "rate_limited", headers={"Retry-After": str(RETRY_AFTER)})
            await refusal(scope, receive, send)
            return
        slot = _Slot(queue)
        queue.waiting += 1
        try:
            await self._run(scope, receive, send, slot)
        finally:
            slot.end()
            queue.waiting -= 1
            if not queue.waiting:
                self._queues.pop(name, None)

    async def _run(self, scope: Scope, receive: Receive, send: Send, slot: _Slot) -> None:
        async def receive_queued() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                await slot.begin()
            return message

        async def send_outside(message: Message) -> None:
            slot.end()
            await send(message)

        # Without a body the application may never call receive.
        if scope["method"] in READING or not has_body(scope):
            await slot.begin()
        await self._app(scope, receive_queued, send_outside)


def _find_kind(scope: Scope) -> str | None:
    method = "GET" if scope["method"] in READING else scope["method"]
    return KINDS.get(f"{method} {scope['state']['route'].path}")


class _Queue:
    """Long requests of one kind and tenant."""

    def __init__(self) -> None:
        self.waiting = 0
        self.lock = asyncio.Lock()


class _Slot:
    """Place of one request in its queue."""

    def __init__(self, queue: _Queue) -> None:
        self._lock = queue.lock
        self._is_held = False
        self._is_over = False

    async def begin(self) -> None:
        """Wait until the requests before this one are done, and restart the deadline."""
        if not self._is_held and not self._is_over:
            await self._lock.acquire()
            self._is_held = True
            deadline = DEADLINE.get()
            if deadline is not None:
                deadline.restart()

    def end(self) -> None:
        self._is_over = True
        if self._is_held:
            self._is_held = False
            self._lock.release()
