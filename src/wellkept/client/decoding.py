"""Records and exceptions of the library, from the JSON of a server.

A record is built from the fields of its dataclass, so a new field needs no change here: an answer without it leaves its
default. The metadata of a field name it in JSON if that differs.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from wellkept import errors
from wellkept.errors import (
    ERROR_DETAILS,
    Invalid,
    SecretRejected,
    StoreBusy,
    TimedOut,
    WellkeptError,
    error_class,
)
from wellkept.knowledge.ingest import IngestedDocument, IngestReport
from wellkept.model import (
    Agent,
    ApiKey,
    Hit,
    IssuedKey,
    Json,
    Memory,
    Owner,
    Recalled,
    Unanswered,
)

HTTP_ERRORS: Mapping[str, type[WellkeptError]] = {
    **dict.fromkeys(("too_large", "unprocessable", "method_not_allowed"), Invalid),
    **dict.fromkeys(("rate_limited", "overloaded"), StoreBusy),
    "too_slow": TimedOut,
}
"""Exceptions for the codes of refusals that the library does not know."""


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


def decode_hits(data: Json, owner: Owner) -> Sequence[Hit]:
    return [decode_record(Hit, each, owner) for each in data["hits"]]


def one(kind: type) -> Callable[[Json, Owner], Any]:
    """Return a decoder for an answer that is one record."""
    return lambda data, owner: decode_record(kind, data, owner)


def many(kind: type, name: str = "items") -> Callable[[Json, Owner], Any]:
    """Return a decoder for an answer with a list of records."""
    return lambda data, owner: [decode_record(kind, each, owner) for each in data[name]]


def field(name: str) -> Callable[[Json, Owner], Any]:
    """Return a decoder for a single field of an answer."""
    return lambda data, owner: data[name]


def build_error(body: Json, details: Json, *, retry_after: float | None, request_id: str) -> WellkeptError:
    """Rebuild the exception that a server answered with. A code of a newer server gives the base class."""
    code, named = str(body["code"]), getattr(errors, str(details.get("type", "")), None)
    is_named = isinstance(named, type) and issubclass(named, WellkeptError) and named.code == code
    found: Any = named if is_named else error_class(code) or HTTP_ERRORS.get(code, WellkeptError)
    # Constructors of our exceptions compose messages; this one is complete.
    error: Any = found.__new__(found, str(body.get("error", "")))
    blank = {"sentence": "", "rule": ""} if issubclass(found, SecretRejected) else {}
    given = {name: details[name] for name in ERROR_DETAILS if name in details}
    vars(error).update(blank | given, code=code, request_id=request_id)
    if retry_after is not None:
        error.retry_after = retry_after
    if request_id:
        error.add_note(f"The request has the id {request_id} in the server's log.")
    return error  # type: ignore[no-any-return]
