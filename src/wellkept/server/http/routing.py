"""Routes: the scope each requires, the table that finds the route of a request, and what is checked of it strictly.

Scopes: READ covers queries, also those sent as POST. WRITE covers what an agent's program does. ADMIN covers what
concerns the tenant as a whole, cannot be undone, or decides what is trusted. OPERATOR covers the whole store.

FastAPI finds the route, validates what it takes and describes it. Requests to REST pass `StrictRoute` before: it
refuses what would be ignored or guessed otherwise, such as a parameter given twice or a field of a route without a
body. A route that is no coroutine runs in a thread of our own.
"""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial, wraps
from json import JSONDecodeError
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from wellkept.errors import Invalid
from wellkept.language.values import read_json
from wellkept.model import KeyScope
from wellkept.server.http.errors import NOT_JSON
from wellkept.server.threads import THREADS, BodyReader

READ, WRITE, ADMIN, OPERATOR = KeyScope
PUBLIC = None

AGENT = "{agent}"
CONSOLE_PATH = "/admin"
NEAR = 0.7
"""Similarity that each part of a path must exceed to be suggested in place of a mistyped one."""

TRANSFER = "transfer"
"""Queue of exports, imports and backups, which have more time than other requests."""

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
    queue: str | None = None  # of long jobs, which a tenant runs one after the other

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
        self.routes = [*routes]
        self._alike = defaultdict[tuple[str, int], list[tuple[list[str], Route]]](list)
        for route in self.routes:
            parts = route.path.split("/")
            self._alike[route.method, len(parts)].append((parts, route))

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
        for expected, route in self._alike.get(("GET" if method == "HEAD" else method, len(parts)), ()):
            if all(name == part or (name[:1] == "{" and part) for name, part in zip(expected, parts, strict=True)):
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


class StrictRoute(APIRoute):
    """A route of REST: parameters are known and given once, JSON is read strictly, and no body goes unread."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None or "requestBody" in (self.openapi_extra or {})
        takes_query = bool(self.dependant.query_params)

        async def handle_strictly(request: Request) -> Response:
            scope = request.scope
            check_query([name for name, _ in parse_query(scope)], takes_query=takes_query)
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


def check_query(names: Sequence[str], *, takes_query: bool) -> None:
    """Refuse parameters that are given twice, of which only one would count, or to a route that takes none; a route
    that takes some checks their names itself. Raises: RequestValidationError.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise _refusal("query", name, f"The parameter {name[:40]!r} was given {count} times; give it once.")
        # The authentication reads the user of any route.
        if not takes_query and name != USER:
            raise _refusal("query", name, f"There is no parameter {name[:40]!r}: this route takes none.")


def reject_fields(body: bytes, *, is_json: bool) -> None:
    """Refuse fields sent to a route that takes no body. Raises: RequestValidationError, Invalid."""
    try:
        sent = parse_body(body) if body else None
    except (RequestValidationError, Invalid):
        if is_json:
            raise
        return
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
        self, method: str, path: str, *, scope: KeyScope | None, queue: str | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Declare a route; a tenant's requests of the same `queue` run one after the other.

        `options` are those of `APIRouter.get`.
        """

        def declare(endpoint: Endpoint) -> Endpoint:
            served = endpoint if inspect.iscoroutinefunction(endpoint) else blocking(endpoint, self.api)
            self.api.add_api_route(path, served, methods=[method], **options)
            declared = self.api.routes[-1]
            assert isinstance(declared, APIRoute)
            self.routes.append(Route(method, declared.path, scope, declared, queue))
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
