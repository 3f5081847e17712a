"""Routes: the scope each requires, the table that finds the route of a request, and what is checked of it strictly.

Scopes: READ covers queries, also those sent as POST. WRITE covers what an agent's program does. ADMIN covers what
concerns the tenant as a whole, cannot be undone, or decides what is trusted. OPERATOR covers the whole store.

FastAPI finds the route, validates what it takes and describes it. Requests to REST pass `StrictRoute` before: it
refuses what would be ignored or guessed otherwise, such as a parameter given twice or a field of a route without a
body. A route that is no coroutine runs in a thread of our own.

Long jobs of a tenant run one after the other: reading a document, exporting a tenant and maintenance take seconds of
processor time and tens of megabytes. A request queues once it is complete, so a slow client blocks no other.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from json import JSONDecodeError
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from wellkept.deadline import DEADLINE
from wellkept.errors import Invalid
from wellkept.language.values import read_json
from wellkept.model import KeyScope
from wellkept.server.http.errors import METHODS, NOT_JSON

READ, WRITE, ADMIN, OPERATOR = KeyScope
PUBLIC = None

AGENT = "{agent}"
CONSOLE_PATH, CONSOLE_COOKIE = "/admin", "wellkept_console"
TRANSFER = "transfer"
"""Queue of exports, imports and backups, which have more time than other requests."""

FILE_ROUTES = frozenset({"/api/import", "/admin/import"})
"""Routes that write the body to disk as it arrives. It may be large and slow as long as data keeps arriving."""

JSON = "application/json"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

MAX_WAITING = 32
JOB_RETRY_AFTER = 5
QUEUE_FULL = f"Your tenant already has {MAX_WAITING} long requests of this kind waiting; try again when some are done."

SCOPE: ContextVar[Scope] = ContextVar("SCOPE")
"""The request that the current task answers."""


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
        found: APIRoute | None = scope["state"]["route"].api
        return (Match.NONE, {}) if found is None else found.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["route"].handle(scope, receive, send)


class RouteTable:
    """Finds the route of a request without trying one pattern after the other."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._alike = defaultdict[tuple[str, int], list[tuple[list[str], Route]]](list)
        for route in routes:
            self.add(route)

    def add(self, route: Route) -> None:
        """Serve one more route; others are answered with 404."""
        parts = route.path.split("/")
        self._alike[route.method, len(parts)].append((parts, route))

    def find(self, method: str, path: str) -> Route | None:
        """Return the route of a request; None if there is none.

        >>> RouteTable([Route("GET", "/api/agents/{agent}", READ)]).find("GET", "/api/agents/atlas").path
        '/api/agents/{agent}'
        """
        parts = path.split("/")
        for expected, route in self._alike.get((method, len(parts)), ()):
            if all(name == part or (name[:1] == "{" and part) for name, part in zip(expected, parts, strict=True)):
                return route
        return None

    def methods(self, path: str) -> Sequence[str]:
        """Return the methods of a path.

        If a fixed path (memories/batch) also matches a route with a parameter (memories/{id}), only the fixed one
        counts.
        """
        found = {each: route.path.count("{") for each in METHODS if (route := self.find(each, path)) is not None}
        return [method for method, count in found.items() if count == min(found.values())]


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


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a body again that was read already, and then further messages."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return unread.pop() if unread else await receive()

    return receive_again


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
                reader = request.app.state.reader
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
            served = endpoint if inspect.iscoroutinefunction(endpoint) else blocking(endpoint, self.api, queue)
            self.api.add_api_route(path, served, methods=[method], **options)
            declared = self.api.routes[-1]
            assert isinstance(declared, APIRoute)
            self.routes.append(Route(method, declared.path, scope, declared, queue))
            return endpoint

        return declare


class LongJobs:
    """Queues for the long requests of each tenant. Only the event loop's thread uses it."""

    def __init__(self) -> None:
        self._queues: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: Counter[tuple[str, str]] = Counter()  # or running

    @asynccontextmanager
    async def turn(self, queue: str | None, tenant: str) -> AsyncIterator[None]:
        """Wait until the requests before this one are done; without a queue, not at all.

        Raises: HTTPException (429) when too many wait.
        """
        if queue is None:
            yield
            return
        name = (queue, tenant)
        if self._waiting[name] >= MAX_WAITING:
            raise HTTPException(429, QUEUE_FULL, headers={"Retry-After": str(JOB_RETRY_AFTER)})
        self._waiting[name] += 1
        try:
            async with self._queues[name]:
                if (deadline := DEADLINE.get()) is not None:
                    deadline.restart()
                yield
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name], self._queues[name]


def blocking(
    endpoint: Callable[..., Any], api: APIRouter, queue: str | None
) -> Callable[..., Coroutine[Any, Any, Any]]:
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

        scope = SCOPE.get()
        server, access = scope["app"].state, scope["state"]["access"]
        async with server.long_jobs.turn(queue, "" if access is None else access.tenant):
            return await server.threads.run(answer)  # type: ignore[no-any-return]

    return run
