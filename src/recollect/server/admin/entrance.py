"""Coming in and going out: the login form, the link that works once, logging out; and the style sheet."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.errors import NotFound, Unauthorized
from recollect.server.addresses import KeyCheck
from recollect.server.admin.logins import COOKIE, LASTS, PATH, Logins, is_console
from recollect.server.admin.pages import page

router = APIRouter(prefix=PATH, include_in_schema=False)
Next = Annotated[str, Query(alias="next")]
Code = Annotated[str, Path()]

TYPES = {"console.css": "text/css", "icon.svg": "image/svg+xml"}
_FOLDER = files("recollect.server.admin").joinpath("static")
_FILES = {name: _FOLDER.joinpath(name).read_bytes() for name in TYPES}


@router.get("/login")
def show_login(request: Request, wanted: Next = "") -> Response:
    """The form; whoever is in already goes on."""
    if request.state.access is not None:
        return RedirectResponse(_inside(wanted), status_code=303)
    return page(request, "login.html", wanted=wanted, problem="")


@router.post("/login")
async def log_in(request: Request, key: Annotated[str, Form()] = "", wanted: Next = "") -> Response:
    """Takes a key once; from then on the cookie stands for it."""
    try:
        record = await _keys(request).verify(key.strip(), request.scope)
    except Unauthorized as error:
        return page(request, "login.html", status=401, wanted=wanted, problem=str(error))
    return _let_in(request, _logins(request).begin(record), wanted)


@router.get("/open/{code}")
def show_link(request: Request, code: Code) -> Response:
    """Asks before it uses the link up: programs that look at links in advance would do so unasked."""
    return page(request, "open.html", code=code, problem="")


@router.post("/open/{code}")
async def open_link(request: Request, code: Code) -> Response:
    """Logs in, once."""
    try:
        return _let_in(request, await run_sync(_logins(request).redeem, code), "")
    except Unauthorized as error:
        _keys(request).count_failure(request.scope)
        return page(request, "open.html", status=401, code=code, problem=str(error))


@router.post("/logout")
def log_out(request: Request) -> Response:
    """Ends this login."""
    _logins(request).end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse(f"{PATH}/login", status_code=303)
    answer.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")
    return answer


@router.get("/static/{name}")
async def get_file(name: Annotated[str, Path()]) -> Response:
    """The style sheet and the icon."""
    if name not in _FILES:
        raise NotFound("There is no such file.")
    return Response(_FILES[name], media_type=TYPES[name], headers={"Cache-Control": "max-age=3600"})


def _logins(request: Request) -> Logins:
    logins: Logins = request.app.state.logins
    return logins


def _keys(request: Request) -> KeyCheck:
    keys: KeyCheck = request.app.state.keys
    return keys


def _let_in(request: Request, cookie: str, wanted: str) -> Response:
    answer = RedirectResponse(_inside(wanted), status_code=303)
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=int(LASTS.total_seconds()),
        path=PATH,
        httponly=True,
        samesite="strict",
        secure=request.headers["origin"].lower().startswith("https:"),  # a proxy may speak TLS for us
    )
    return answer


def _inside(wanted: str) -> str:
    """Where to go, if that is a page of the console.

    >>> _inside("/admin/audit?q=x"), _inside("//evil.example"), _inside("")
    ('/admin/audit?q=x', '/admin', '/admin')
    """
    return wanted if is_console(wanted.partition("?")[0]) else PATH
