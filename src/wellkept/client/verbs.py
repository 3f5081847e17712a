"""Verbs of a client, made from the library's own methods and the routes that serve them.

`Verb(AgentMemory.get, call("GET /api/agents/{agent}/memories/{id}", one(Memory)))` has the signature and the docstring
of the method. On a plain connection it is a method, on an async one a coroutine method.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Coroutine, Mapping
from datetime import datetime
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote, urlencode

from wellkept.api.agent import MAX_PAGE
from wellkept.arguments import CheckedMethods, check_fields, is_storable, refuse_former
from wellkept.client.connection import AsyncConnection, Connection, HttpRequest, PlainConnection, Plan
from wellkept.client.decoding import field, many
from wellkept.errors import Invalid, NotFound
from wellkept.language.names import encode_cursor
from wellkept.language.values import check_limit
from wellkept.memory.rules_filters import And, Comparison, Not, Or, render_filter
from wellkept.model import Json, Owner

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=Connection)
Decode = Callable[[Json, Owner], Any]
MakePlan = Callable[["ClientView[Any]", Json], Plan[Any]]

PLACE = re.compile(r"{(\w+)}")
MAX_PATH_CHARS = 60_000
SAFE_SEGMENT = re.compile(r"(?!\.{1,2}$)[^/\\]+")
"""Values that stay one segment of a path: `..` would lead to another route."""


class ClientView(CheckedMethods, Generic[C]):
    """Base class of what a client offers: its owner, and the headers of its requests."""

    _embedded: ClassVar[tuple[type, ...]] = ()
    """Classes of the library with the same verbs, some of which a server does not offer."""

    def __init__(self, connection: C, owner: Owner, headers: Mapping[str, str | bytes] | None = None) -> None:
        self.owner = owner
        self._connection = connection
        self._headers = dict(headers or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.address.url!r}, agent={self.owner.agent!r})"

    def _open(self, view: Callable[..., T], name: str) -> T:
        return view(self._connection, self.owner, self._headers)

    # Type checkers know the verbs there are.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            sentence = f"{type(self).__name__} has no {name!r}"
            if not name.startswith("_") and any(hasattr(each, name) for each in self._embedded):
                sentence += "; a server does not offer it. Use Wellkept, or the wellkept command, beside the store"
            raise AttributeError(f"{sentence}.", name=name, obj=self)


class Verb(Generic[P, T]):
    """One verb of a client, with the signature of the method that it calls on a server."""

    def __init__(self, method: Callable[Concatenate[Any, P], T], make_plan: MakePlan) -> None:
        signature = inspect.signature(method)
        (me, *_), limit = signature.parameters, signature.parameters.get("limit")
        rest = next((each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), "")

        def start(view: ClientView[Any], args: Any, kwargs: Any) -> Plan[Any]:
            refuse_former(kwargs)
            given = dict(signature.bind(view, *args, **kwargs).arguments)
            del given[me]
            given |= given.pop(rest, {})
            if given:
                check_fields(method, given)
            # Nobody reports how far the server has come.
            given.pop("progress", None)
            if isinstance(given.get("where"), Comparison | And | Or | Not):
                given["where"] = render_filter(given["where"])
            # The only default that routes do not share.
            if limit is not None:
                given.setdefault("limit", limit.default)
            return make_plan(view, given)

        def plain(view: ClientView[PlainConnection], /, *args: Any, **kwargs: Any) -> Any:
            return view._connection.run(start(view, args, kwargs))

        async def awaited(view: ClientView[AsyncConnection], /, *args: Any, **kwargs: Any) -> Any:
            return await view._connection.run(start(view, args, kwargs))

        # help() and inspect.signature() show the arguments of the library's method.
        self._plain: Any = update_wrapper(plain, method)
        self._awaited: Any = update_wrapper(awaited, method)

    @overload
    def __get__(self, view: ClientView[PlainConnection], owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(self, view: ClientView[AsyncConnection], owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, view: None, owner: Any = None) -> Any: ...

    def __get__(self, view: Any, owner: Any = None) -> Any:
        if view is None:
            return self._plain
        is_awaited = isinstance(view._connection, AsyncConnection)
        return (self._awaited if is_awaited else self._plain).__get__(view, owner)


def send(
    view: ClientView[Any],
    route: str,
    given: Json,
    *,
    names: Mapping[str, str] | None = None,
    is_repeatable: bool = False,
) -> Plan[Any]:
    """Call a route and return its JSON.

    Arguments named in the path go there; the others become the query of a GET or DELETE, or else the body. None means
    that an argument was not given. Raises: WellkeptError.
    """
    rest = dict(given)

    def fill(place: re.Match[str]) -> str:
        value = str(rest.pop(place[1]) if place[1] in rest else getattr(view.owner, place[1]))
        if not SAFE_SEGMENT.fullmatch(value):
            raise NotFound(f"There is no such {place[1]}.")
        return quote(value, safe="")

    method, _, template = route.partition(" ")
    path, renamed = PLACE.sub(fill, template), names or {}
    values = {renamed.get(name, name): value for name, value in rest.items() if value is not None}
    headers: dict[str, str | bytes] = dict(view._headers)
    content = None
    if method in ("GET", "DELETE"):
        query = urlencode({name: format_value(value) for name, value in values.items()}, errors="backslashreplace")
        path += f"{'&' if '?' in path else '?'}{query}" if query else ""
        if len(path) > MAX_PATH_CHARS:
            raise Invalid("The arguments are too long for the address of a request; send shorter ones.")
    elif values or method == "PATCH":
        headers["Content-Type"], content = "application/json", _encode(values)
    request = HttpRequest(method=method, path=path, headers=headers, content=content, is_repeatable=is_repeatable)
    return (yield from view._connection.address.exchange(request))


def format_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, str) else _encode(value).decode()


def _encode(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_to_json)
        # Half a surrogate pair is left to the server, which refuses it in a sentence.
        return text.encode() if is_storable(text) else json.dumps(value, default=_to_json).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"This cannot be sent to a server as JSON: {error}.") from error


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection) and not isinstance(value, bytes | bytearray):
        return [*value]
    raise TypeError(f"a value of type {type(value).__name__}")


def call(
    route: str,
    decode: Decode | None = None,
    *,
    names: Mapping[str, str] | None = None,
    also: Json | None = None,
    is_repeatable: bool = False,
) -> MakePlan:
    """Return a plan that calls a route once; `names` renames arguments, `also` adds those that are not given.

    `is_repeatable` is for a POST that may run twice: it is sent without an Idempotency-Key, for which the server would
    store the answer.
    """

    def plan(view: ClientView[Any], given: Json) -> Plan[Any]:
        given = _complete(view, given, also)
        answer = yield from send(view, route, given, names=names, is_repeatable=is_repeatable)
        return None if decode is None or answer is None else decode(answer, view.owner)

    return plan


def _complete(view: ClientView[Any], given: Json, also: Json | None) -> Json:
    """Return the arguments with the defaults of a route, of which `{agent}` means the agent of the view."""
    agent = view.owner.agent
    whole: Json = {name: agent if value == "{agent}" else value for name, value in (also or {}).items()}
    return whole | given


def pages(
    route: str,
    kind: type,
    listing: str,
    *,
    start: str = "before",
    names: Mapping[str, str] | None = None,
) -> MakePlan:
    """Return a plan that lists records, also where that takes several pages.

    `listing` is the server's name for its cursors, `start` the argument that continues a listing.
    """

    def plan(view: ClientView[Any], given: Json) -> Plan[Any]:
        items: list[Any] = []
        limit, after = given.pop("limit"), given.pop(start, None)
        wanted = MAX_PAGE if limit is None else check_limit(limit, most=MAX_PAGE)
        cursor = None if after is None or after == "" else encode_cursor(listing, after)
        while True:
            page = {**given, "limit": wanted if limit is None else wanted - len(items), "cursor": cursor}
            answer = yield from send(view, route, page, names=names)
            items += many(kind)(answer, view.owner)
            cursor = answer["next_cursor"]
            if cursor is None or (limit is not None and len(items) >= wanted):
                return items

    return plan


def local(function: Callable[..., Any]) -> MakePlan:
    """Return a plan that calls a function of this process and sends nothing."""

    def plan(view: ClientView[Any], given: Json) -> Plan[Any]:
        yield from ()
        return function(**given)

    return plan


text = field("text")
