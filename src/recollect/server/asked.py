"""What is looked at in every request to REST before its route: nothing that was sent may go unheard."""

from __future__ import annotations

import json
from collections import Counter

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send


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

    Raises: RequestValidationError.
    """
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if count > 1:
            raise _refusal("query", name, f"The parameter {name[:40]!r} was given {count} times; give it once.")
    route = request.scope.get("route")
    if request.method == "GET" or not isinstance(route, APIRoute) or _takes_body(route):
        return
    for name in _fields(await request.body()):
        raise _refusal("body", name, f"There is no field {name[:40]!r}: this route takes no body.")


def _takes_body(route: APIRoute) -> bool:
    return route.body_field is not None or "requestBody" in (route.openapi_extra or {})


def _fields(body: bytes) -> list[str]:
    try:
        sent = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return []
    return [*sent] if isinstance(sent, dict) else []


def _refusal(place: str, name: str, sentence: str) -> RequestValidationError:
    return RequestValidationError([{"type": "unknown_field", "loc": (place, name), "msg": sentence}])
