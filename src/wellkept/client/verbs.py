"""Verbs of a client, made from the library's own methods and the routes that serve them.

`Verb(AgentMemory.get, call("GET /api/agents/{agent}/memories/{id}", one(Memory)))` has the signature and the docstring
of the method. On a plain connection it is a method, on an async one a coroutine method.

Answers become records by the fields of their dataclasses, so a new field needs no change here: an answer without it
leaves its default. The metadata of a field name it in JSON if that differs.
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache, update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from urllib.parse import quote, urlencode

from wellkept.api.views import MAX_PAGE
from wellkept.arguments import CheckedMethods, check_fields, is_storable, refuse_former
from wellkept.client.connection import AsyncConnection, Connection, HttpRequest, PlainConnection, Plan
from wellkept.errors import (
    Invalid,
    NotFound,
)
from wellkept.knowledge.ingest import IngestedDocument, IngestReport
from wellkept.language.names import encode_cursor
from wellkept.language.values import check_limit
from wellkept.memory.rules_filters import And, Comparison, Not, Or, render_filter
from wellkept.model import Agent, ApiKey, Hit, IssuedKey, Json, Memory, Owner, Recalled, Unanswered


def decode_record(kind: Any, data: Json, owner: Owner) -> Any:
    """Build a record of the class `kind`. `owner` completes what an answer leaves out: its tenant and its agent."""
    agent = data["id"] if kind is Agent else data.get("agent_id")
    known = {"owner": Owner(owner.tenant, agent) if agent else owner.whole, "tenant": owner.tenant, "path": ""}
    given: Json = {}
    for each, type_, in_json in _fields_of(kind):
        if in_json in data:
            given[each.name] = _decode(type_, data[in_json], owner)
        elif each.name in known and each.default is MISSING:
            given[each.name] = known[each.name]
    return kind(**given)


@cache
def _fields_of(kind: Any) -> Sequence[tuple[Field[Any], Any, str]]:
    """Return each field of a record with its type and its name in JSON."""
    hints = get_type_hints(kind)
    return [(each, hints[each.name], each.metadata.get("alias", each.name)) for each in fields(kind)]


def _decode(kind: Any, value: Any, owner: Owner) -> Any:
    """Convert a JSON value to the type of a field."""
    origin, arguments = get_origin(kind), get_args(kind)
    if value is None or kind is Any or origin is Literal:
        return value
    if origin in (types.UnionType, typing.Union):
        # All unions of our records are one type, or None.
        return _decode(next(each for each in arguments if each is not types.NoneType), value, owner)
    if origin is tuple:
        return tuple(_decode(arguments[0], each, owner) for each in value)
    if origin is not None:
        return dict(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if isinstance(kind, type) and issubclass(kind, StrEnum | float):
        return kind(value)
    return decode_record(kind, value, owner) if is_dataclass(kind) else value


def decode_recalled(data: Json, owner: Owner) -> Recalled:
    hits = (decode_record(Hit, each, owner) for each in data["hits"])
    return Recalled(hits, (Unanswered(**each) for each in data["missing"]), data["heading"])


def decode_ingested(data: Json, owner: Owner) -> IngestReport:
    ingested = decode_record(IngestedDocument, {**data, "document": data}, owner)
    return IngestReport(documents=(ingested,))


def decode_issued(data: Json, owner: Owner) -> IssuedKey:
    return IssuedKey(record=decode_record(ApiKey, data, owner), key=data["key"])


def decode_batch(data: Json, owner: Owner) -> Sequence[Memory]:
    return [decode_record(Memory, each["memory"], owner) for each in data["results"]]


def one(kind: type) -> Callable[[Json, Owner], Any]:
    """Return a decoder for an answer that is one record."""
    return lambda data, owner: decode_record(kind, data, owner)


def many(kind: type, name: str = "items") -> Callable[[Json, Owner], Any]:
    """Return a decoder for an answer with a list of records."""
    return lambda data, owner: [decode_record(kind, each, owner) for each in data[name]]


def field(name: str) -> Callable[[Json, Owner], Any]:
    """Return a decoder for a single field of an answer."""
    return lambda data, owner: data[name]


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
