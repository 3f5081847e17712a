"""The header Idempotency-Key: a repeated POST gets the first answer again and is not executed twice.

Runs after authentication, which knows the tenant, and after the limit on bodies. Requests without the header do not
pass it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from functools import partial
from hashlib import sha256

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.access.idempotency import Idempotency
from wellkept.errors import RequestInProgress, WellkeptError
from wellkept.ports.history import Claim, KeptAnswer
from wellkept.server.http.auth import Access
from wellkept.server.http.errors import error_response, http_refusal, refusal
from wellkept.server.http.requests import IDEMPOTENCY_KEY, USER_HEADER, header
from wellkept.server.http.routing import is_console
from wellkept.server.mcp.mounting import PATH as MCP
from wellkept.server.rest.agent_runs import EVENT_STREAM
from wellkept.server.threads import Threads

log = logging.getLogger("wellkept.server")

AGENT_HEADER = b"x-wellkept-agent"
REPLAYED = {"Idempotency-Replayed": "true"}
VALID_KEY = re.compile(r"[!-~]{1,255}")
MAX_ANSWER_BYTES = 64 * 1024
SECRET_ROUTES = frozenset({"/api/keys"})
"""Routes with a secret in the answer, which must not be stored."""

RENEW_SECONDS = 20.0
"""Interval at which a long request renews its claim; less than `DEAD_AFTER`."""

BOUNDARY = re.compile(r'boundary="?([^";,]{16,})')
"""The boundary of a form, which clients change with each try. A short one could also occur in the content."""

PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A random text, the same for every try. A retry gets the first answer again and writes nothing.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
"""OpenAPI description of the header."""

BAD_KEY = "Send Idempotency-Key once, with 1 to 255 visible ASCII characters; a UUID is a good choice."
OTHER_REQUEST = (
    "This Idempotency-Key was used for another request, with a different path, body or API key; "
    "send the first one again unchanged, or choose a new key."
)
NO_ANSWER = (
    "A request with this Idempotency-Key was executed, at least in part, and its answer is not available. "
    "Check what is stored; to repeat the request, choose a new key."
)


class IdempotencyMiddleware:
    """Executes each POST with an Idempotency-Key once."""

    def __init__(self, app: ASGIApp, *, idempotency: Idempotency, threads: Threads) -> None:
        self._app = app
        self._idempotency = idempotency
        self._threads = threads
        self._under_way: set[tuple[str, str]] = set()  # used by the event loop's thread alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = header(scope, IDEMPOTENCY_KEY) or ""
        access: Access | None = scope["state"]["access"]
        if access is None or is_console(scope["path"]):
            await self._app(scope, receive, send)
            return
        if not VALID_KEY.fullmatch(key) or sum(name == IDEMPOTENCY_KEY for name, _ in scope["headers"]) > 1:
            await error_response(400, BAD_KEY)(scope, receive, send)
            return
        # Each user has keys of its own, or one would learn of another's and could use them up. No key has a space.
        named = key if access.user is None else f"{key} {access.user}"
        claim = self._idempotency.claim(access.tenant, named)
        claimed = claim.tenant, claim.key_hash
        if claimed in self._under_way:
            await refusal(Request(scope), RequestInProgress())(scope, receive, send)
            return
        self._under_way.add(claimed)
        try:
            await self._answer(claim, _Body(scope, receive, (key, access.key_id)), scope, send)
        finally:
            self._under_way.discard(claimed)

    async def _answer(self, claim: Claim, body: _Body, scope: Scope, send: Send) -> None:
        try:
            kept = await self._threads.run(partial(self._idempotency.find, claim))
            response = None if kept is None else await _replay(kept, body)
        except WellkeptError as error:
            response = refusal(Request(scope), error)
        # The body is too large, or too slow.
        except HTTPException as error:
            response = http_refusal(Request(scope), error)
        if response is not None:
            await response(scope, body.receive, send)
            return
        held = _HeldAnswer(send)
        renewing = asyncio.create_task(self._renew(claim))
        try:
            with self._idempotency.claiming(claim):
                await self._app(scope, body.receive, held.send)
            if claim.is_lost and not claim.is_written and not held.is_passed_on:
                # A tool may have reported the conflict in its own answer.
                held.messages.clear()
                await refusal(Request(scope), RequestInProgress())(scope, body.receive, send)
        finally:
            renewing.cancel()
            await self._keep(claim, held, body, scope["state"]["route"].path)
            await held.pass_on()

    async def _renew(self, claim: Claim) -> None:
        """Keep other servers on the same store from taking a long request for a dead one."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._threads.run(partial(self._idempotency.renew, claim))
            except WellkeptError as error:
                log.warning("Could not renew the Idempotency-Key of a running request: %s", error)

    async def _keep(self, claim: Claim, held: _HeldAnswer, body: _Body, route: str) -> None:
        """Store the answer before it is sent. A refusal or failure that wrote nothing leaves the key free."""
        # MCP answers failures with 200, too.
        is_success = 200 <= held.status < 300 and route != MCP
        if not claim.is_written and not (is_success and held.is_whole and not claim.is_lost):
            return
        is_kept = held.is_whole and held.status < 500 and route not in SECRET_ROUTES
        try:
            answer = KeptAnswer(
                at=claim.at,
                request_hash=await body.digest(),
                status=held.status,
                content_type=held.content_type,
                body=held.body if is_kept else None,
            )
            await self._threads.run(partial(self._idempotency.keep, claim, answer))
        except (WellkeptError, HTTPException) as error:
            log.warning("Could not store the answer to a request with an Idempotency-Key: %s", error)


async def _replay(kept: KeptAnswer, body: _Body) -> Response:
    if kept.status is not None and await body.digest() != kept.request_hash:
        return error_response(409, OTHER_REQUEST, "idempotency_conflict")
    if kept.status is None or kept.body is None:
        return error_response(409, NO_ANSWER, "idempotency_no_answer")
    headers = {"Content-Type": kept.content_type} if kept.content_type else {}
    return Response(kept.body, kept.status, headers={**headers, **REPLAYED})


class _Body:
    """The body of a request, hashed as it is read to recognise a repeated request."""

    def __init__(self, scope: Scope, receive: Receive, keys: tuple[str, str | None]) -> None:
        # Include the key, which is stored nowhere, so that short bodies cannot be guessed from their hash.
        parts = (*keys, scope["path"], scope["query_string"], header(scope, AGENT_HEADER), header(scope, USER_HEADER))
        boundary = BOUNDARY.search(header(scope, b"content-type") or "")
        self._receive = receive
        self._hash = sha256(repr(parts).encode())
        self._boundary = boundary[1].encode("latin-1") if boundary else b""
        self._tail = b""  # bytes that may begin a boundary; not hashed yet
        self._is_whole = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not self._is_whole:
            self._add(message.get("body", b""))
            self._is_whole = not message.get("more_body")
        return message

    async def digest(self) -> str:
        """Read what is left and return the hash of the request. Raises: HTTPException."""
        while not self._is_whole and (await self.receive())["type"] == "http.request":
            pass
        whole = self._hash.copy()
        whole.update(self._tail)
        return whole.hexdigest()

    def _add(self, piece: bytes) -> None:
        if not self._boundary:
            self._hash.update(piece)
            return
        # Hold back as many bytes as could begin a boundary that the next piece completes.
        text = (self._tail + piece).replace(self._boundary, b"")
        end = max(len(text) - len(self._boundary) + 1, 0)
        self._hash.update(text[:end])
        self._tail = text[end:]


class _HeldAnswer:
    """An answer held back until it is stored. Of a stream or a large answer only the end is held back."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.messages: list[Message] = []
        self.status = 500  # sent if the application fails without an answer
        self.content_type = ""
        self.body = b""
        self.is_whole = False  # `body` is the complete answer
        self.is_passed_on = False

    async def send(self, message: Message) -> None:
        is_end = message["type"] == "http.response.body" and not message.get("more_body")
        if self.is_passed_on and not is_end:
            await self._send(message)
            return
        self.messages.append(message)
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.content_type = header(message, b"content-type") or ""
        elif not self.is_passed_on:
            self.body += message.get("body", b"")
            self.is_whole = is_end and len(self.body) <= MAX_ANSWER_BYTES
        if not is_end and (self.content_type.startswith(EVENT_STREAM) or len(self.body) > MAX_ANSWER_BYTES):
            await self.pass_on()

    async def pass_on(self) -> None:
        """Send what was held back, and the rest as it comes."""
        self.is_passed_on = True
        while self.messages:
            await self._send(self.messages.pop(0))
