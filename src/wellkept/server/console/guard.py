"""Middleware of the console: security headers, protection of forms, and refusals as pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.server.console.logins import PATH
from wellkept.server.console.pages import render
from wellkept.server.http.errors import error_response
from wellkept.server.http.routing import header

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    # With "no-referrer" browsers would send our own forms with the Origin "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}
CACHE = "Cache-Control"
NOT_OURS = "This form was not sent from a page of the console. Open the console and try again."
KEPT = ("Retry-After", "Connection")
"""Headers of a refusal that its page keeps."""

SAFE_METHODS = ("GET", "HEAD")


class ConsoleGuard:
    """Adds headers to answers of the console and turns refusals into pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(scope, receive, send)
        if scope["method"] in SAFE_METHODS and scope["path"].endswith("/"):
            without = RedirectResponse(_address(scope, scope["path"].rstrip("/")), status_code=303)
            await without(scope, receive, answer.send)
            return
        # HostGuard has checked the Origin. Every current browser sends one with a form.
        if scope["method"] not in SAFE_METHODS and header(scope, b"origin") is None:
            await error_response(403, NOT_OURS)(scope, receive, answer.send)
        else:
            await self._app(scope, receive, answer.send)


class _Answer:
    """An answer; a refusal in JSON is held back until it is complete and becomes a page."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault(CACHE, "no-store")
            if message["status"] >= 400 and headers.get("content-type", "") == "application/json":
                self._start = message
                return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            start, self._start = self._start, None
            await self._page(start)(self._scope, self._receive, self.send)
            return
        await self._send(message)

    def _page(self, start: Message) -> Response:
        status: int = start["status"]
        if status == 401 and self._scope["method"] in SAFE_METHODS:
            return RedirectResponse(_login_for(self._scope), status_code=303)
        refusal = json.loads(self._body)
        access = self._scope.get("state", {}).get("access")
        page = render("refused.html", access=access, status=status, sentence=refusal["error"])
        sent = Headers(raw=start["headers"])
        return HTMLResponse(page, status, headers={name: sent[name] for name in KEPT if name in sent})


def _login_for(scope: Scope) -> str:
    """Return the address of the login form, with the page to open after it."""
    address = _address(scope, scope["path"])
    return f"{PATH}/login" + ("" if address == PATH else f"?next={quote(address, safe='')}")


def _address(scope: Scope, path: str) -> str:
    query = scope["query_string"].decode("latin-1")
    return quote(path) + (f"?{query}" if query else "")
