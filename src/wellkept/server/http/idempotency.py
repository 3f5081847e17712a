"""The header Idempotency-Key: a repeated POST of JSON gets the first answer again and is not executed twice.

Runs after authentication, which knows the tenant, and after the limit on bodies. Requests without the header do not
pass it.
"""

from __future__ import annotations

import logging
import re
from functools import partial
from hashlib import sha256

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.access.idempotency import Idempotency
from wellkept.errors import RequestInProgress, WellkeptError
from wellkept.model.stored import Claim, KeptAnswer
from wellkept.server.http.auth import Access
from wellkept.server.http.errors import answer_error, error_response
from wellkept.server.http.requests import IDEMPOTENCY_KEY
from wellkept.server.http.routing import USER_HEADER, header, is_console, replay
from wellkept.server.mcp.mounting import PATH as MCP
from wellkept.server.rest.agents import EVENT_STREAM
from wellkept.server.threads import Threads

log = logging.getLogger("wellkept.server")

AGENT_HEADER = b"x-wellkept-agent"
REPLAYED = {"Idempotency-Replayed": "true"}
VALID_KEY = re.compile(r"[!-~]{1,255}")
MAX_ANSWER_BYTES = 64 * 1024
SECRET_ROUTES = frozenset({"/api/keys"})
"""Routes with a secret in the answer, which must not be stored."""

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
            await answer_error(Request(scope), RequestInProgress())(scope, receive, send)
            return
        self._under_way.add(claimed)
        try:
            await self._answer(claim, (key, access.key_id), scope, receive, send)
        finally:
            self._under_way.discard(claimed)

    async def _answer(
        self, claim: Claim, keys: tuple[str, str | None], scope: Scope, receive: Receive, send: Send
    ) -> None:
        response: Response | None
        try:
            body = await Request(scope, receive).body()
            # Include the key, which is stored nowhere, so that short bodies cannot be guessed from their hash.
            target = (scope["path"], scope["query_string"], header(scope, AGENT_HEADER), header(scope, USER_HEADER))
            request_hash = sha256(repr((*keys, *target)).encode() + body).hexdigest()
            kept = await self._threads.run(partial(self._idempotency.find, claim))
            response = None if kept is None else _replay(kept, request_hash)
        # The body is too large or too slow, or its client left.
        except (WellkeptError, HTTPException, ClientDisconnect) as error:
            response = answer_error(Request(scope), error)
        if response is not None:
            await response(scope, receive, send)
            return
        held = _HeldAnswer(send)
        try:
            with self._idempotency.claiming(claim):
                await self._app(scope, replay(body, receive), held.send)
            if claim.is_lost and not claim.is_written and not held.is_stream:
                # A tool may have reported the conflict in its own answer.
                held.messages.clear()
                await answer_error(Request(scope), RequestInProgress())(scope, receive, send)
        finally:
            await self._keep(claim, held, request_hash, scope["state"]["route"].path)
            for message in held.messages:
                await send(message)

    async def _keep(self, claim: Claim, held: _HeldAnswer, request_hash: str, route: str) -> None:
        """Store the answer before it is sent. A refusal or failure that wrote nothing leaves the key free."""
        # MCP answers failures with 200, too.
        is_success = 200 <= held.status < 300 and route != MCP and not held.is_stream
        if not claim.is_written and (not is_success or claim.is_lost):
            return
        is_kept = not held.is_stream and len(held.body) <= MAX_ANSWER_BYTES and held.status < 500
        answer = KeptAnswer(
            at=claim.at,
            request_hash=request_hash,
            status=held.status,
            content_type=held.content_type,
            body=held.body if is_kept and route not in SECRET_ROUTES else None,
        )
        try:
            await self._threads.run(partial(self._idempotency.keep, claim, answer))
        except WellkeptError as error:
            log.warning("Could not store the answer to a request with an Idempotency-Key: %s", error)


def _replay(kept: KeptAnswer, request_hash: str) -> Response:
    if kept.status is not None and request_hash != kept.request_hash:
        return error_response(409, OTHER_REQUEST, "idempotency_conflict")
    if kept.status is None or kept.body is None:
        return error_response(409, NO_ANSWER, "idempotency_no_answer")
    headers = {"Content-Type": kept.content_type} if kept.content_type else {}
    return Response(kept.body, kept.status, headers={**headers, **REPLAYED})


class _HeldAnswer:
    """An answer held back until it is stored; of a stream of events only the end is held back."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.messages: list[Message] = []
        self.status = 500  # sent if the application fails without an answer
        self.content_type = ""
        self.body = b""
        self.is_stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.content_type = header(message, b"content-type") or ""
            self.is_stream = self.content_type.startswith(EVENT_STREAM)
        if self.is_stream and message.get("more_body", True):
            await self._send(message)
            return
        self.body += message.get("body", b"")
        self.messages.append(message)
