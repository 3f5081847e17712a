"""A number for every request, so that an answer and a line of the log can be brought together; and the headers that all
answers have in common."""

from __future__ import annotations

import logging
import os
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.server.errors import error_response
from recollect.server.headers import header, protected

HEADER = "X-Request-Id"
_NAME = HEADER.lower().encode()
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logging.getLogger("recollect.server")


class RequestId:
    """Outermost middleware: names the request, protects its answer, and answers 500 when something inside it broke."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, _NAME) or ""
        request_id = given if _ACCEPTABLE.fullmatch(given) else os.urandom(8).hex()
        scope.setdefault("state", {})["request_id"] = request_id
        has_started = False

        async def send_named(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*protected(message.get("headers", ())), (_NAME, request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except Exception:  # the last one who can answer: what nobody foresaw goes to the log
            log.exception("%s %s broke (request %s)", scope["method"], scope["path"], request_id)
            if has_started:
                raise
            sentence = f"Something went wrong here; the server's log has it under {request_id}."
            await error_response(500, sentence)(scope, receive, send_named)
