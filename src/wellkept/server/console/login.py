"""The way in: login form, one-time link, logout, static files, and a guard that protects forms and shows refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellkept.access.keys import LASTS
from wellkept.errors import NotFound, Unauthorized
from wellkept.server.console.pages import STATIC, STATIC_TYPES, page, page_router, render
from wellkept.server.http.errors import error_response
from wellkept.server.http.routing import CONSOLE_COOKIE as COOKIE
from wellkept.server.http.routing import CONSOLE_PATH as PATH
from wellkept.server.http.routing import PUBLIC, header, is_console

router = page_router()
Next = Annotated[str, Query(alias="next")]
Code = Annotated[str, Path()]


@router.get("/login", scope=PUBLIC)
def show_login(request: Request, next_page: Next = "") -> Response:
    """Show the form; redirect clients that are logged in."""
    if request.state.access is not None:
        return RedirectResponse(_console_page(next_page), status_code=303)
    return page(request, "login.html", wanted=next_page, problem="")


@router.post("/login", scope=PUBLIC)
async def log_in(request: Request, key: Annotated[str, Form()] = "", next_page: Next = "") -> Response:
    """Log in with a key and set the cookie."""
    try:
        record = await request.app.state.keys.verify(key.strip(), request.scope)
    except Unauthorized as error:
        return page(request, "login.html", status=401, wanted=next_page, problem=str(error))
    return _set_cookie(request, await run_sync(request.app.state.logins.begin, record), next_page)


@router.get("/open/{code}", scope=PUBLIC)
def show_link(request: Request, code: Code) -> Response:
    """Ask before using up the link: programs that preview links must not."""
    return page(request, "open.html", code=code, problem="")


@router.post("/open/{code}", scope=PUBLIC)
async def open_link(request: Request, code: Code) -> Response:
    """Log in with a link, once."""
    try:
        return _set_cookie(request, await run_sync(request.app.state.logins.redeem, code), "")
    except Unauthorized as error:
        request.app.state.keys.count_failure(request.scope)
        return page(request, "open.html", status=401, code=code, problem=str(error))


@router.post("/logout", scope=PUBLIC)
def log_out(request: Request) -> Response:
    """Log out."""
    request.app.state.logins.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse(f"{PATH}/login", status_code=303)
    answer.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")
    return answer


@router.get("/static/{name}", scope=PUBLIC)
async def get_file(name: Annotated[str, Path()]) -> Response:
    """Return a style sheet, a script or an image."""
    if name not in STATIC:
        raise NotFound("There is no such file.")
    return Response(STATIC[name], media_type=STATIC_TYPES[name], headers={"Cache-Control": "max-age=3600"})


def _set_cookie(request: Request, cookie: str, next_page: str) -> Response:
    answer = RedirectResponse(_console_page(next_page), status_code=303)
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=int(LASTS.total_seconds()),
        path=PATH,
        httponly=True,
        samesite="strict",
        # A proxy may terminate TLS.
        secure=request.headers["origin"].lower().startswith("https:"),
    )
    return answer


def _console_page(next_page: str) -> str:
    """Return the page to open, if it belongs to the console; otherwise the first page.

    >>> _console_page("/admin/audit?q=x"), _console_page("//evil.example"), _console_page("")
    ('/admin/audit?q=x', '/admin', '/admin')
    """
    return next_page if is_console(next_page.partition("?")[0]) else PATH


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
