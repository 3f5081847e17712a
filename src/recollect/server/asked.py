"""What is looked at in every request to REST before its route: nothing that was sent may go unheard."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.errors import Invalid
from recollect.policy.json_values import read_json
from recollect.server.errors import NOT_JSON
from recollect.server.guard import FILE_ROUTES
from recollect.server.headers import has_json
from recollect.server.threads import BodyReader


class HeadAsGet:
    """Answers HEAD as GET; the server leaves the body out. Monitors and proxies ask in this way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


async def nothing_unheard(request: Request) -> None:
    """Refuse a parameter that is given twice, of which one would count, and fields sent to a route that takes none.

    Raises: RequestValidationError, Invalid.
    """
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if count > 1:
            raise _refusal("query", name, f"The parameter {name[:40]!r} was given {count} times; give it once.")
    route = request.scope.get("route")
    if request.method == "GET" or request.url.path in FILE_ROUTES or not isinstance(route, APIRoute):
        return
    body = await request.body()
    reader: BodyReader = request.app.state.reader
    sent = await reader.read(body, partial(_read, body, is_json=has_json(request.scope)))
    if isinstance(sent, dict) and not _takes_body(route):
        for name in sent:
            raise _refusal("body", name, f"There is no field {name[:40]!r}: this route takes no body.")


def _takes_body(route: APIRoute) -> bool:
    return route.body_field is not None or "requestBody" in (route.openapi_extra or {})


def _read(body: bytes, *, is_json: bool) -> Any:
    """Parse the body, which the framework may have done more leniently; None if it is not meant to be JSON.

    Raises: Invalid.
    """
    try:
        return read_json(body) if body else None
    except (ValueError, Invalid) as error:
        if not is_json:
            return None
        raise error if isinstance(error, Invalid) else Invalid(NOT_JSON) from error


def _refusal(place: str, name: str, sentence: str) -> RequestValidationError:
    return RequestValidationError([{"type": "unknown_field", "loc": (place, name), "msg": sentence}])
