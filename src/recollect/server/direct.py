"""The short way to a route: for those that are given a path, a query or JSON, and answer JSON, as nearly all do.

The framework looks through all routes, solves dependencies, and hands each request over to threads twice; that took
longer than most routes do. What is needed of it is known beforehand from the route's signature. Whatever is not as it
should be (a body that is no JSON or does not fit, an unknown parameter, a client that has gone) takes the framework's
way instead, with all that was received, so there is one place that explains a refusal. Only large bodies are refused
here: the framework would read them on the event loop, and everybody would wait.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import JSONDecodeError
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi import params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import Invalid, RecollectError
from recollect.policy.json_values import read_json
from recollect.server.auth import DEPENDENCIES, Asked
from recollect.server.errors import NOT_JSON, http_refusal, located, refusal, validation_refusal
from recollect.server.headers import has_json, header
from recollect.server.threads import SMALL_BODY, BodyReader, Threads

JSON = "application/json"
Giver = Callable[[Asked], Any]


class Direct:
    """Stands before the framework's router; the door (`access`) has found out which route is meant."""

    def __init__(self, app: ASGIApp, *, routes: Iterable[APIRoute], threads: Threads, reader: BodyReader) -> None:
        self._app = app
        self._threads = threads
        self._reader = reader
        self._plans = plans(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plan = self._plans.get((scope["method"], scope["state"]["route"])) if scope["type"] == "http" else None
        if plan is None or plan.is_offered_more(scope):
            await self._app(scope, receive, send)
            return
        received: list[Message] = []
        try:
            body = b"" if plan.body is None else await _body(scope, receive, received)
            content = None
            if body is not None and len(body) > SMALL_BODY:
                values = await self._reader.run(partial(_given_by_large, plan, body))
                content = await self._threads.run(partial(plan.answer, scope, lambda: values))
            elif body is not None:
                content = await self._threads.run(partial(plan.answer, scope, partial(plan.given, body)))
        except RecollectError as error:
            await refusal(Request(scope), error)(scope, receive, send)
        except RequestValidationError as error:
            await validation_refusal(error)(scope, receive, send)
        except HTTPException as error:  # the body is too large, or too slow
            await http_refusal(Request(scope), error)(scope, receive, send)
        else:
            if content is None:  # the framework shall say what is wrong
                await self._app(scope, _again(received, receive), send)
            else:
                await plan.send(content, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one route is called."""

    endpoint: Callable[..., Any]
    path: Mapping[str, int]  # by name, which part of the path it is
    givers: Mapping[str, Giver]  # of the arguments that follow from who asks
    body: tuple[str, type[BaseModel]] | None
    query: tuple[str, type[BaseModel]] | None
    arguments: Sequence[str]  # that are parts of the path
    status: int
    answers: TypeAdapter[Any] | None  # None: nothing

    def is_offered_more(self, scope: Scope) -> bool:
        """Whether there is a query, or a body, of which nothing is wanted."""
        if self.body is None and scope["method"] != "GET":
            length = header(scope, b"content-length")
            if (length is not None and length != "0") or header(scope, b"transfer-encoding") is not None:
                return True
        return self.query is None and bool(scope["query_string"])

    def given(self, body: bytes) -> dict[str, Any]:
        """Return the argument that is in the body.

        Raises: ValueError when it is no JSON or does not fit, Invalid.
        """
        if self.body is None:
            return {}
        name, model = self.body
        return {name: model.model_validate(read_json(body))}

    def answer(self, scope: Scope, given: Callable[[], dict[str, Any]]) -> bytes | None:
        """The content; None if the request does not fit. Runs in a thread.

        Raises: RecollectError.
        """
        try:
            values = given()
            if self.query is not None:
                name, model = self.query
                pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
                values[name] = model.model_validate(dict(pairs))
                if len(values[name].model_fields_set) != len(pairs):
                    return None
        except ValueError:  # no JSON, or not what is asked for
            return None
        parts = scope["path"].split("/")
        path = {name: parts[place] for name, place in self.path.items()}
        for name in self.arguments:
            values[name] = path[name]
        asked = Asked(scope, path)
        for name, giver in self.givers.items():
            values[name] = giver(asked)
        told = self.endpoint(**values)
        return (
            b"" if self.answers is None else self.answers.dump_json(self.answers.validate_python(told), by_alias=True)
        )

    async def send(self, content: bytes, send: Send) -> None:
        headers = [] if self.answers is None else [(b"content-length", str(len(content)).encode())]
        headers.append((b"content-type", JSON.encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def plans(routes: Iterable[APIRoute]) -> dict[tuple[str, str], Plan]:
    """A plan for each route that can be called directly, by method and path."""
    every = [(method, route) for route in routes for method in route.methods or ()]
    found = {}
    for method, route in every:
        shape = route.path.split("/")
        is_sole = sum(each == method and _overlap(shape, other.path.split("/")) for each, other in every) == 1
        plan = _plan(route) if is_sole else None
        if plan is not None:
            found[method, route.path] = plan
    return found


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a path can be of both shapes; then the framework decides."""
    if any(":" in part for part in (*one, *other)):
        return one[1:2] == other[1:2]
    return len(one) == len(other) and all(a == b or "{" in (a[:1], b[:1]) for a, b in zip(one, other, strict=True))


def _plan(route: APIRoute) -> Plan | None:
    """None: there is something about it that only the framework knows how to do."""
    is_plain = isinstance(route.response_model, type) and issubclass(route.response_model, BaseModel)
    is_empty = route.response_model is None and route.status_code == 204
    if inspect.iscoroutinefunction(route.endpoint) or route.dependencies or not (is_plain or is_empty):
        return None
    path = {part[1:-1]: place for place, part in enumerate(route.path.split("/")) if part[:1] == "{"}
    hints = get_type_hints(route.endpoint, include_extras=True)
    givers, bodies, queries, arguments = {}, [], [], []
    for name in inspect.signature(route.endpoint).parameters:
        wanted, *how = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        is_model = isinstance(wanted, type) and issubclass(wanted, BaseModel)
        if len(how) == 1 and isinstance(how[0], params.Depends) and (giver := DEPENDENCIES.get(how[0].dependency)):
            givers[name] = giver
        elif len(how) == 1 and isinstance(how[0], params.Path) and wanted is str and name in path:
            arguments.append(name)
        elif len(how) == 1 and isinstance(how[0], params.Query) and is_model:
            queries.append((name, wanted))
        elif not how and is_model:
            bodies.append((name, wanted))
        else:
            return None
    if len(bodies) > 1 or len(queries) > 1:
        return None
    return Plan(
        endpoint=route.endpoint,
        path=path,
        givers=givers,
        body=bodies[0] if bodies else None,
        query=queries[0] if queries else None,
        arguments=arguments,
        status=route.status_code or 200,
        answers=TypeAdapter(route.response_model) if is_plain else None,
    )


def _given_by_large(plan: Plan, body: bytes) -> dict[str, Any]:
    """Explain what is wrong with a large body here, since the framework would read it again on the event loop.

    Raises: RequestValidationError, Invalid.
    """
    try:
        return plan.given(body)
    except ValidationError as error:
        raise RequestValidationError(located(error)) from None
    except JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([problem]) from None
    except ValueError:
        raise Invalid(NOT_JSON) from None


async def _body(scope: Scope, receive: Receive, received: list[Message]) -> bytes | None:
    """The whole body; None if it is not said to be JSON, or not all of it came. Notes what was `received`.

    Raises: HTTPException.
    """
    if not has_json(scope):
        return None
    while True:
        received.append(message := await receive())
        if message["type"] != "http.request":
            return None
        if not message.get("more_body"):
            return b"".join(each.get("body", b"") for each in received)


def _again(received: Sequence[Message], receive: Receive) -> Receive:
    """What was received, and then what follows it."""
    waiting = list(reversed(received))

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
