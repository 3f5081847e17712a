"""Declare routes: with the scope each requires, checked strictly, and run in a thread of our own if they block.

FastAPI finds the route, validates what it takes and describes it. Requests to REST pass `StrictRoute` before: it
refuses
what would be ignored or guessed otherwise, such as a parameter given twice or a field of a route without a body.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial, wraps
from json import JSONDecodeError
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from wellkept.errors import Invalid
from wellkept.language.json_values import read_json
from wellkept.model import KeyScope
from wellkept.server.http.errors import NOT_JSON
from wellkept.server.http.limits import FILE_ROUTES
from wellkept.server.http.requests import has_body, has_json, parse_query
from wellkept.server.http.routing import Route
from wellkept.server.threads import THREADS, BodyReader

JSON = "application/json"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


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
            self.routes.append(Route(method, declared.path, scope))
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
