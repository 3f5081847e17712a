"""Login form, one-time link, logout, and the static files."""

from __future__ import annotations

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.access.keys import LASTS, Logins
from wellkept.errors import NotFound, Unauthorized
from wellkept.server.console.logins import COOKIE, PATH
from wellkept.server.console.pages import STATIC, STATIC_TYPES, page, page_router
from wellkept.server.http.auth import KeyCheck
from wellkept.server.http.routing import PUBLIC, is_console

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
        record = await _keys(request).verify(key.strip(), request.scope)
    except Unauthorized as error:
        return page(request, "login.html", status=401, wanted=next_page, problem=str(error))
    return _set_cookie(request, await run_sync(_logins(request).begin, record), next_page)


@router.get("/open/{code}", scope=PUBLIC)
def show_link(request: Request, code: Code) -> Response:
    """Ask before using up the link: programs that preview links must not."""
    return page(request, "open.html", code=code, problem="")


@router.post("/open/{code}", scope=PUBLIC)
async def open_link(request: Request, code: Code) -> Response:
    """Log in with a link, once."""
    try:
        return _set_cookie(request, await run_sync(_logins(request).redeem, code), "")
    except Unauthorized as error:
        _keys(request).count_failure(request.scope)
        return page(request, "open.html", status=401, code=code, problem=str(error))


@router.post("/logout", scope=PUBLIC)
def log_out(request: Request) -> Response:
    """Log out."""
    _logins(request).end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse(f"{PATH}/login", status_code=303)
    answer.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")
    return answer


@router.get("/static/{name}", scope=PUBLIC)
async def get_file(name: Annotated[str, Path()]) -> Response:
    """Return a style sheet, a script or an image."""
    if name not in STATIC:
        raise NotFound("There is no such file.")
    return Response(STATIC[name], media_type=STATIC_TYPES[name], headers={"Cache-Control": "max-age=3600"})


def _logins(request: Request) -> Logins:
    logins: Logins = request.app.state.logins
    return logins


def _keys(request: Request) -> KeyCheck:
    keys: KeyCheck = request.app.state.keys
    return keys


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
