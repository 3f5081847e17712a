"""JSON routes: those that take a path, a query or JSON and answer JSON, as nearly all do.

The framework describes them in the OpenAPI document but does not run them: matching patterns one by one, solving
dependencies and switching threads twice takes longer than most routes do. The signature of a route tells what it needs,
so it is compiled once, when the application is created.

Requests to REST are checked strictly: unknown and repeated parameters and unexpected fields are refused.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import JSONDecodeError
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fastapi import params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wellkept.errors import Invalid, WellkeptError
from wellkept.language.json_values import read_json
from wellkept.server.http.auth import DEPENDENCIES, RequestScope
from wellkept.server.http.errors import NOT_JSON, client_left, http_refusal, located, refusal, validation_refusal
from wellkept.server.http.limits import FILE_ROUTES
from wellkept.server.http.requests import USER, has_body, has_json, parse_query, read_body
from wellkept.server.http.routing import Route
from wellkept.server.threads import SMALL_BODY, BodyReader, Threads

JSON = "application/json"


class JsonRoutes:
    """Innermost middleware: answers JSON routes, and leaves all others to the framework.

    Answers HEAD like GET, for monitors and proxies; the server leaves the body out.
    """

    def __init__(self, app: ASGIApp, *, routes: Iterable[Route], threads: Threads, reader: BodyReader) -> None:
        """Raises: TypeError when the signature of a route cannot be served."""
        self._app = app
        self._threads = threads
        self._reader = reader
        self._handlers = {route: compile_route(route, route.json) for route in routes if route.json is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        handler = self._handlers.get(scope["state"]["route"]) if scope["type"] == "http" else None
        if handler is None:
            await self._app(scope, receive, send)
            return
        response: Response
        try:
            content = await self._answer(handler, scope, receive)
        except WellkeptError as error:
            response = refusal(Request(scope), error)
        except RequestValidationError as error:
            response = validation_refusal(error)
        # The body is too large, or too slow.
        except HTTPException as error:
            response = http_refusal(Request(scope), error)
        except ClientDisconnect:
            response = client_left()
        else:
            await handler.send(content, send)
            return
        await response(scope, receive, send)

    async def _answer(self, handler: JsonHandler, scope: Scope, receive: Receive) -> bytes:
        # Routes without a body read one only if it was announced, to refuse its fields.
        is_sent = scope["method"] != "GET" and has_body(scope)
        body = await read_body(receive) if is_sent or handler.body is not None else b""
        if len(body) <= SMALL_BODY:
            return await self._threads.run(partial(handler.answer, scope, body))
        # One large body at a time: parsing keeps the interpreter busy, and other requests would wait.
        checked = await self._reader.run(lambda: handler.validate_body(handler.parse(scope, body)))
        return await self._threads.run(partial(handler.answer, scope, b"", checked=checked))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonHandler:
    """One route, compiled."""

    endpoint: Callable[..., Any]
    path: Mapping[str, int]  # by name of a parameter, the index of its part
    dependencies: Mapping[str, Callable[[RequestScope], Any]]  # by argument
    body: tuple[str, type[BaseModel]] | None
    query: tuple[str, type[BaseModel]] | None
    arguments: Sequence[str]  # path parameters that the endpoint takes
    status: int
    answers: TypeAdapter[Any] | None  # None: no content

    def answer(self, scope: Scope, body: bytes, *, checked: Mapping[str, Any] | None = None) -> bytes:
        """Call the route and return the content of its answer. Runs in a thread; `checked` replaces the body.

        Raises: RequestValidationError, WellkeptError.
        """
        sent = self.parse(scope, body) if checked is None else None
        parts = scope["path"].split("/")
        path = {name: parts[place] for name, place in self.path.items()}
        request = RequestScope(scope, path)
        values: dict[str, Any] = {name: resolve(request) for name, resolve in self.dependencies.items()}
        values.update((name, path[name]) for name in self.arguments)
        if self.query is not None:
            name, model = self.query
            # The middleware has read the user, also where the route has no such parameter.
            asked = {key: value for key, value in parse_query(scope) if key != USER or key in model.model_fields}
            values[name] = _validate(model, asked, place="query")
        values.update(self.validate_body(sent) if checked is None else checked)
        result = self.endpoint(**values)
        if self.answers is None:
            return b""
        return self.answers.dump_json(self.answers.validate_python(result), by_alias=True)

    def parse(self, scope: Scope, body: bytes) -> Any:
        """Return the JSON of a body, or the body itself if its Content-Type is not JSON.

        Raises: RequestValidationError, also when a query parameter is repeated; Invalid.
        """
        reject_repeats(name for name, _ in parse_query(scope))
        if self.body is None:
            reject_fields(body, is_json=has_json(scope))
            return None
        try:
            return read_json(body) if body and has_json(scope) else body
        except JSONDecodeError as error:
            problem = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
            raise RequestValidationError([problem]) from None
        except ValueError:
            raise Invalid(NOT_JSON) from None

    def validate_body(self, sent: Any) -> dict[str, Any]:
        """Return the argument that is in the body, if the route takes one. Raises: RequestValidationError."""
        if self.body is None:
            return {}
        name, model = self.body
        return {name: _validate(model, sent, place="body")}

    async def send(self, content: bytes, send: Send) -> None:
        headers = [] if self.answers is None else [(b"content-length", str(len(content)).encode())]
        headers.append((b"content-type", JSON.encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def compile_route(route: Route, declared: APIRoute) -> JsonHandler:
    """Return the handler of a JSON route.

    Raises: TypeError when its signature has anything but path parameters, a query, a body and known dependencies.
    """
    answer = declared.response_model
    shapes = get_args(answer) if isinstance(answer, UnionType) else [answer]
    is_content = all(isinstance(each, type) and issubclass(each, BaseModel) for each in shapes)
    is_empty = answer is None and declared.status_code == 204
    if inspect.iscoroutinefunction(declared.endpoint) or declared.dependencies or not (is_content or is_empty):
        raise TypeError(f"{route.name} is no JSON route; declare it with is_json=False.")
    path = {part[1:-1]: place for place, part in enumerate(route.path.split("/")) if part[:1] == "{"}
    dependencies: dict[str, Callable[[RequestScope], Any]] = {}
    models: dict[str, list[tuple[str, type[BaseModel]]]] = {"body": [], "query": []}
    arguments = []
    for name, hint in get_type_hints(declared.endpoint, include_extras=True).items():
        if name == "return":
            continue
        annotation, *markers = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        match markers:
            case [params.Depends(dependency=dependency)] if dependency in DEPENDENCIES:
                dependencies[name] = DEPENDENCIES[dependency]
            case [params.Path()] if annotation is str and name in path:
                arguments.append(name)
            case [params.Query()] if is_model and not models["query"]:
                models["query"].append((name, annotation))
            case [] if is_model and not models["body"]:
                models["body"].append((name, annotation))
            case _:
                raise TypeError(f"{route.name} cannot take the argument {name}; declare it with is_json=False.")
    return JsonHandler(
        endpoint=declared.endpoint,
        path=path,
        dependencies=dependencies,
        body=next(iter(models["body"]), None),
        query=next(iter(models["query"]), None),
        arguments=arguments,
        status=declared.status_code or 200,
        answers=TypeAdapter(answer) if is_content else None,
    )


def _validate(model: type[BaseModel], sent: object, *, place: str) -> BaseModel:
    """Validate parameters or a body. Raises: RequestValidationError."""
    try:
        # From attributes, as the framework does, because some error messages differ.
        return model.model_validate(sent, from_attributes=True)
    except ValidationError as error:
        raise RequestValidationError(located(error, place=place)) from None


async def reject_unknown_params(request: Request) -> None:
    """Dependency of the REST routes that the framework serves; `json_routes` checks the others.

    Raises: RequestValidationError, Invalid.
    """
    reject_repeats(name for name, _ in request.query_params.multi_items())
    route = request.scope.get("route")
    if request.method == "GET" or request.url.path in FILE_ROUTES or not isinstance(route, APIRoute):
        return
    body = await request.body()
    reader: BodyReader = request.app.state.reader
    is_taken = route.body_field is not None or "requestBody" in (route.openapi_extra or {})
    check = partial(_parse_json, body) if is_taken else partial(reject_fields, body)
    await reader.read(body, partial(check, is_json=has_json(request.scope)))


def reject_repeats(names: Iterable[str]) -> None:
    """Refuse query parameters that are given twice, of which only one would count. Raises: RequestValidationError."""
    for name, count in Counter(names).items():
        if count > 1:
            raise _refusal("query", name, f"The parameter {name[:40]!r} was given {count} times; give it once.")


def reject_fields(body: bytes, *, is_json: bool) -> None:
    """Refuse fields sent to a route that takes no body. Raises: RequestValidationError, Invalid."""
    sent = _parse_json(body, is_json=is_json)
    for name in sent if isinstance(sent, dict) else ():
        raise _refusal("body", name, f"There is no field {name[:40]!r}: this route takes no body.")


def _parse_json(body: bytes, *, is_json: bool) -> object:
    """Parse a body; return None if it is empty, or if it is not JSON and its Content-Type does not say so.

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
