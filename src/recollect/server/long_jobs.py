"""One long job at a time for each tenant, so that nobody fills the server with them.

Reading a document, moving a tenant and looking after a store take seconds of the processor and tens of megabytes. A
second one of the same tenant and kind waits for the first; those of other tenants do not. A request waits when its body
is whole, so a client that sends slowly holds nobody up, and gives its place up when its answer begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.deadline import DEADLINE
from recollect.server.errors import error_response
from recollect.server.headers import header

MAX_WAITING = 32
RETRY_AFTER = 5
FULL = f"Your tenant has {MAX_WAITING} long requests of this kind waiting already; try again when some are done."

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
"""The kind of each long job, by its route."""

READING = ("GET", "HEAD")


class LongJobs:
    """Lets the long requests of a tenant through one after the other. Only the event loop's thread uses it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._queues: dict[tuple[str, str], _Queue] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = _kind(scope) if scope["type"] == "http" else None
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
        turn = _Turn(queue)
        queue.waiting += 1
        try:
            await self._run(scope, receive, send, turn)
        finally:
            turn.end()
            queue.waiting -= 1
            if not queue.waiting:
                self._queues.pop(name, None)

    async def _run(self, scope: Scope, receive: Receive, send: Send, turn: _Turn) -> None:
        async def receive_in_turn() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                await turn.begin()
            return message

        async def send_outside(message: Message) -> None:
            turn.end()
            await send(message)

        if scope["method"] in READING or not has_body(scope):  # then nobody may ask for it
            await turn.begin()
        await self._app(scope, receive_in_turn, send_outside)


def _kind(scope: Scope) -> str | None:
    method = "GET" if scope["method"] in READING else scope["method"]
    return KINDS.get(f"{method} {scope['state']['route']}")


def has_body(scope: Scope) -> bool:
    """Return True if a body was announced."""
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None


class _Queue:
    """The long requests of one kind and tenant."""

    def __init__(self) -> None:
        self.waiting = 0
        self.lock = asyncio.Lock()


class _Turn:
    """One request's place in its queue."""

    def __init__(self, queue: _Queue) -> None:
        self._lock = queue.lock
        self._is_held = False
        self._is_over = False

    async def begin(self) -> None:
        """Wait until the requests before this one are done. The time it may take is counted from then on."""
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
