"""Routes: the scope each requires, the table that finds the route of a request, and what is checked of it strictly.

Scopes: READ covers queries, also those sent as POST. WRITE covers what an agent's program does. ADMIN covers what
concerns the tenant as a whole, cannot be undone, or decides what is trusted. OPERATOR covers the whole store.

FastAPI finds the route, validates what it takes and describes it. Requests to REST pass `StrictRoute` before: it
refuses what would be ignored or guessed otherwise, such as a parameter given twice or a field of a route without a
body. A route that is no coroutine runs in a thread of our own.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial, wraps
from json import JSONDecodeError
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from wellkept.errors import Invalid
from wellkept.language.json_values import read_json
from wellkept.model import KeyScope
from wellkept.server.http.errors import NOT_JSON
from wellkept.server.threads import THREADS, BodyReader

READ, WRITE, ADMIN, OPERATOR = KeyScope
PUBLIC = None

AGENT = "{agent}"
CONSOLE_PATH = "/admin"
NEAR = 0.7
"""Similarity that each part of a path must exceed to be suggested in place of a mistyped one."""

LONG_JOBS: Mapping[str, str] = {
    "POST /api/kb/documents": "documents",
    "POST /admin/documents": "documents",
    "POST /api/import": "transfer",
    "POST /admin/import": "transfer",
    "GET /api/export": "transfer",
    "GET /admin/export": "transfer",
    "GET /admin/backup/file": "transfer",
    "POST /api/erase": "upkeep",
    "POST /admin/erasure": "upkeep",
    "POST /admin/erasure/preview": "upkeep",
    "POST /admin/maintenance": "upkeep",
    "GET /admin/maintenance/preview": "upkeep",
    "POST /api/maintenance": "upkeep",
    "POST /api/secrets/scan": "upkeep",
    "GET /api/audit/verify": "upkeep",
    "GET /admin/audit/verify": "upkeep",
    "POST /api/agents/{agent}/changes/consolidate": "upkeep",
    "POST /admin/agents/{agent}/changes": "upkeep",
}
"""Kind of each long job, by its route."""


FILE_ROUTES = frozenset({"/api/import", "/admin/import"})
"""Routes that write the body to disk as it arrives. It may be large and slow as long as data keeps arriving."""

JSON = "application/json"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route as it was declared."""

    method: str
    path: str  # with the names of its parameters, never their values
    scope: KeyScope | None  # None: no key
    api: APIRoute | None = None  # as the framework serves it

    @property
    def name(self) -> str:
        """Method and path, such as "GET /health"."""
        return f"{self.method} {self.path}"

    def agent_in(self, path: str) -> str:
        """Return the agent in the path of a request; empty if the route names none.

        >>> Route("POST", "/api/agents/{agent}/recall", READ).agent_in("/api/agents/atlas/recall")
        'atlas'
        """
        names = self.path.split("/")
        return path.split("/")[names.index(AGENT)] if AGENT in names else ""


UNKNOWN = Route("", "(unknown)", READ)
"""Route of requests that match none; the framework answers 404 or 405."""

UNLISTED = Route("", UNKNOWN.path, ADMIN)
"""Route of requests to routes that were added after the application was created."""


def is_console(path: str) -> bool:
    """Return True if the path belongs to the console.

    >>> is_console("/admin"), is_console("/admin/audit"), is_console("/administrator")
    (True, True, False)
    """
    return path == CONSOLE_PATH or path.startswith(f"{CONSOLE_PATH}/")


class FoundRoute(BaseRoute):
    """First route of the application: the one that the table found, instead of trying one pattern after the other."""

    path = ""
    methods: frozenset[str] = frozenset()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found: Route = scope.get("state", {}).get("route", UNKNOWN)
        return (Match.NONE, {}) if found.api is None else found.api.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["route"].handle(scope, receive, send)


class RouteTable:
    """Finds the route of a request without trying one pattern after the other."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises: ValueError when two routes can match the same request."""
        self.routes = [*routes]
        self._shapes: dict[tuple[str, int], dict[tuple[int, ...], _Shape]] = {}
        for number, route in enumerate(self.routes):
            for other in self.routes[:number]:
                if route.method == other.method and _is_ambiguous(route.path.split("/"), other.path.split("/")):
                    raise ValueError(f"{other.name} and {route.name} can match the same request.")
            parts = route.path.split("/")
            names = tuple(place for place, part in enumerate(parts) if part[:1] == "{")
            shapes = self._shapes.setdefault((route.method, len(parts)), {})
            shapes.setdefault(names, _Shape(len(parts), names)).add(parts, route)

    @property
    def scopes(self) -> Mapping[str, KeyScope | None]:
        """The scope of each route, by method and path."""
        return {route.name: route.scope for route in self.routes}

    def find(self, method: str, path: str) -> Route | None:
        """Return the route of a request; None if there is none.

        >>> RouteTable([Route("GET", "/api/agents/{agent}", READ)]).find("HEAD", "/api/agents/atlas").path
        '/api/agents/{agent}'
        """
        parts = path.split("/")
        shapes = self._shapes.get(("GET" if method == "HEAD" else method, len(parts)))
        if shapes is not None:
            for shape in shapes.values():
                route = shape.find(parts)
                if route is not None:
                    return route
        return None

    def nearest(self, path: str) -> str:
        """Return the REST path that a mistyped one may mean; empty if nothing is like it.

        >>> paths = "/api/chat/sessions", "/api/agents/{agent}/memories"
        >>> table = RouteTable(Route("GET", path, READ) for path in paths)
        >>> table.nearest("/api/agents/atlas/memory"), table.nearest("/chat/session"), table.nearest("/favicon.ico")
        ('/api/agents/atlas/memories', '/api/chat/sessions', '')
        """
        typed = [part for part in path.split("/") if part]
        typed = typed[1:] if typed[:1] == ["api"] else typed
        best, found = NEAR, ""
        for route in self.routes:
            if is_console(route.path):
                continue
            shape = route.path.split("/")[1:]
            # A short path may lack the first parts of the route, such as "api", but no parameter.
            left_out = shape[: max(len(shape) - len(typed), 0)]
            parts = [*left_out, *typed]
            has_words = any(expected[:1] != "{" for expected in shape[len(left_out) :])
            if len(parts) != len(shape) or any(expected[:1] == "{" for expected in left_out) or not has_words:
                continue
            suggested = [part if expected[:1] == "{" else expected for expected, part in zip(shape, parts, strict=True)]
            similarity = min(map(_compare_parts, suggested, parts))
            if similarity > best:
                best, found = similarity, "/" + "/".join(suggested)
        return found


def check_scopes(router: APIRouter, scopes: Mapping[str, KeyScope | None]) -> None:
    """Check that every route of the framework's router was declared with a scope. Raises: TypeError."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or ():
            name = f"{method} {getattr(route, 'path', '')}"
            if name not in scopes:
                raise TypeError(f"{name} is declared without a scope.")


class _Shape:
    """Routes of one length with parameters in the same places, found by the words between them."""

    def __init__(self, length: int, names: Sequence[int]) -> None:
        self._names = names
        self._words = itemgetter(*(place for place in range(length) if place not in names))
        self._routes: dict[Any, Route] = {}

    def add(self, parts: Sequence[str], route: Route) -> None:
        self._routes[self._words(parts)] = route

    def find(self, parts: Sequence[str]) -> Route | None:
        route = self._routes.get(self._words(parts))
        return route if route is not None and all(parts[place] for place in self._names) else None


def _is_ambiguous(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(a == b or "{" in (a[:1], b[:1]) for a, b in zip(one, other, strict=True))


def _compare_parts(expected: str, part: str) -> float:
    return SequenceMatcher(a=expected, b=part.lower()).ratio() if expected != part else 1.0


USER_HEADER, USER = b"x-wellkept-user", "user"
"""Header and query parameter that name the end user a request acts for."""


def parse_query(scope: Scope) -> list[tuple[str, str]]:
    """Return the names and values of the query parameters."""
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this name (lower case).

    >>> header({"headers": [(b"host", b"localhost:8077")]}, b"host")
    'localhost:8077'
    """
    for each, value in scope["headers"]:
        if each == name:
            return str(value, "latin-1")
    return None


def has_json(scope: Scope) -> bool:
    """Return True if the Content-Type is JSON.

    >>> has_json({"headers": [(b"content-type", b"application/merge-patch+json; charset=utf-8")]})
    True
    """
    main, _, kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower().partition("/")
    return main == "application" and "/" not in kind and (kind == "json" or kind.endswith("+json"))


def has_body(scope: Scope) -> bool:
    """Return True if the request announces a body."""
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None


async def read_body(receive: Receive) -> bytes:
    """Read a whole body. Raises: HTTPException, ClientDisconnect."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


class StrictRoute(APIRoute):
    """A route of REST: parameters are given once, JSON is read strictly, and a route without a body gets none."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None or "requestBody" in (self.openapi_extra or {})

        async def handle_strictly(request: Request) -> Response:
            scope = request.scope
            reject_repeats(name for name, _ in parse_query(scope))
            if scope["method"] != "GET" and scope["path"] not in FILE_ROUTES and (takes_body or has_body(scope)):
                body, is_json = await request.body(), has_json(scope)
                reader: BodyReader = request.app.state.reader
                if not takes_body:
                    await reader.read(body, partial(reject_fields, body, is_json=is_json))
                elif body and is_json:
                    # The framework takes what a request has parsed already.
                    request._json = await reader.read(body, partial(parse_body, body))
            return await handle(request)

        return handle_strictly


def reject_repeats(names: Iterable[str]) -> None:
    """Refuse query parameters that are given twice, of which only one would count. Raises: RequestValidationError."""
    for name, count in Counter(names).items():
        if count > 1:
            raise _refusal("query", name, f"The parameter {name[:40]!r} was given {count} times; give it once.")


def reject_fields(body: bytes, *, is_json: bool) -> None:
    """Refuse fields sent to a route that takes no body. Raises: RequestValidationError, Invalid."""
    try:
        sent = read_json(body) if body else None
    except (ValueError, Invalid) as error:
        if not is_json:
            return
        raise error if isinstance(error, Invalid) else Invalid(NOT_JSON) from error
    for name in sent if isinstance(sent, dict) else ():
        raise _refusal("body", name, f"There is no field {name[:40]!r}: this route takes no body.")


def parse_body(body: bytes) -> Any:
    """Return the JSON of a body. Raises: RequestValidationError, Invalid."""
    try:
        return read_json(body)
    except JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([problem]) from None
    except ValueError:
        raise Invalid(NOT_JSON) from None


def _refusal(place: str, name: str, sentence: str) -> RequestValidationError:
    return RequestValidationError([{"type": "unknown_field", "loc": (place, name), "msg": sentence}])


class Router:
    """A group of routes. Each is declared with its scope: `@router.get("/health", scope=PUBLIC)`.

    A route that is no coroutine runs in a thread of its request, and so does writing its answer as JSON.
    """

    def __init__(
        self,
        *,
        prefix: str = "",
        tags: Sequence[str] = (),
        include_in_schema: bool = True,
        route_class: type[APIRoute] = StrictRoute,
    ) -> None:
        self.api = APIRouter(prefix=prefix, tags=[*tags], include_in_schema=include_in_schema, route_class=route_class)
        self.routes: list[Route] = []
        self.get = partial(self._declare, "GET")
        self.post = partial(self._declare, "POST")
        self.put = partial(self._declare, "PUT")
        self.patch = partial(self._declare, "PATCH")
        self.delete = partial(self._declare, "DELETE")

    def _declare(
        self, method: str, path: str, *, scope: KeyScope | None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Declare a route. `options` are those of `APIRouter.get`."""

        def declare(endpoint: Endpoint) -> Endpoint:
            served = endpoint if inspect.iscoroutinefunction(endpoint) else blocking(endpoint, self.api)
            self.api.add_api_route(path, served, methods=[method], **options)
            declared = self.api.routes[-1]
            assert isinstance(declared, APIRoute)
            self.routes.append(Route(method, declared.path, scope, declared))
            return endpoint

        return declare


def blocking(endpoint: Callable[..., Any], api: APIRouter) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a route that runs `endpoint` and writes its answer in a thread, with one switch there and back.

    The framework would switch twice, and wait for the validation of an answer that was made by its own declaration.
    """
    place = len(api.routes)

    @wraps(endpoint)
    async def run(**arguments: Any) -> Response:
        route: Any = api.routes[place]

        def answer() -> Response:
            result = endpoint(**arguments)
            if isinstance(result, Response):
                return result
            content = b"" if route.response_field is None else route.response_field.serialize_json(result)
            # A route may ask for the response to set another status.
            given = (each.status_code for each in arguments.values() if isinstance(each, Response))
            return Response(content, next(given, 0) or route.status_code or 200, media_type=JSON)

        return await THREADS.get().run(answer)

    return run
