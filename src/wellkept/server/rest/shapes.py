"""Shapes that several groups of routes share.

Shapes check types; the library checks rules, because it explains refusals best. The limits and choices in the OpenAPI
document come from the library's own tables.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache, reduce
from operator import attrgetter, or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError
from starlette.requests import Request

from wellkept.api.views import MAX_PAGE, PAGE
from wellkept.arguments import FORMER
from wellkept.caller import current_caller
from wellkept.errors import Invalid
from wellkept.language.names import MAX_USER_CHARS
from wellkept.memory.rules_trust import check_claim
from wellkept.model import Kind, Origin, Scope
from wellkept.server.http.routing import USER


def field(
    default: Any = ..., description: str = "", *, example: Any = None, strict: bool | None = None, **limits: Any
) -> Any:
    """Return a field of a body or query, by default a required one.

    `limits` (`minimum=1`, `enum=[…]`) are for the document; the library checks them. A strict number or flag is not
    converted from a text.
    """
    told: dict[str, Any] = {
        "description": description or None,
        "json_schema_extra": limits or None,
        "examples": None if example is None else [example],
        "strict": strict,
    }
    return Field(default, **{name: value for name, value in told.items() if value is not None})


def _iso_text(value: object) -> object:
    if not isinstance(value, str) or "T" not in value.upper():
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_iso_text)]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
KindName = Annotated[str, field(enum=[*Kind])]
ScopeName = Annotated[str, field(enum=[*Scope])]
OriginName = Annotated[str, field(enum=[*Origin])]


Body = TypeVar("Body")
FORM = "multipart/form-data"
NO_FILE = "The form has no file; send it as the field `file`, with its name."


def is_form(request: Request) -> bool:
    """Return True if the body is a form."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM


def check_form(form: Mapping[str, Any], fields: Sequence[str], *, file: str, flag: str) -> dict[str, Any]:
    """Return the texts of a form with these fields, of which `file` is left out and `flag` is true or false.

    Raises: Invalid.
    """
    for name, value in form.items():
        if name not in fields:
            raise Invalid(f"There is no field {name[:40]!r}; there are: {', '.join(fields)}.")
        if name != file and not isinstance(value, str):
            raise Invalid(f"Only the field {file} is a file.")
    texts = {name: value for name, value in form.items() if name != file}
    if flag in texts:
        try:
            texts[flag] = TypeAdapter(bool).validate_python(texts[flag])
        except ValidationError as error:
            raise Invalid(f"{flag} is true or false.") from error
    return texts


TEXT_FIELD, FLAG_FIELD = {"type": "string"}, {"type": "boolean"}
FILE_FIELD = {"type": "string", "format": "binary"}


def describe_form(fields: Mapping[str, Any], required: Sequence[str], other: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a body that is a form with these fields, or of another media type."""
    form = {"type": "object", "required": required, "properties": fields}
    return {"requestBody": {"required": True, "content": {**other, FORM: {"schema": form}}}}


class RequestBody(BaseModel):
    """A body or query. Unknown fields are refused, so that typing mistakes are never ignored."""

    model_config = ConfigDict(extra="forbid")
    is_query: ClassVar[bool] = False
    other_names: ClassVar[Mapping[str, str]] = {}  # aliases of fields

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        if cls.is_query and USER not in cls.model_fields:
            # The authentication has read it, also where the route has no such parameter.
            values = {name: value for name, value in values.items() if name != USER}
        for also, name in cls.other_names.items():
            if also in values and name not in values:
                values = {name if key == also else key: value for key, value in values.items()}
        for name in values:
            if name not in cls.model_fields:
                if name in FORMER:
                    raise PydanticCustomError("unknown_field", "{sentence}", {"sentence": FORMER[name]})
                # Its own fields first, then those of its base.
                known = dict.fromkeys((*cls.__annotations__, *cls.model_fields))
                raise PydanticCustomError(
                    "unknown_field",
                    "There is no {what} {name}; there are: {known}.",
                    {
                        "what": "parameter" if cls.is_query else "field",
                        "name": repr(name[:40]),
                        "known": ", ".join(each for each in known if each in cls.model_fields),
                    },
                )
        return values


def _without_defaults(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default", None)


class Patch(RequestBody):
    """Changes to a record. Defaults are never used: omitted fields stay."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


UserName = Annotated[
    str,
    field(
        description="The end user it acts for, as in X-Wellkept-User; null: the user of the key, or none.",
        minLength=1,
        maxLength=MAX_USER_CHARS,
        example="u-7",
    ),
]


class Query(RequestBody):
    """The parameters of a query."""

    is_query: ClassVar[bool] = True


class Paging(Query):
    """Size and start of a page."""

    limit: int = field(PAGE, minimum=1, maximum=MAX_PAGE)
    cursor: str = field("", "The `next_cursor` of the previous page.")


WHERE_EXAMPLE = "tags = food and metadata.city = 'Oslo' and created_at > 2026-10-01"
WhereText = Annotated[str, field(description="A filter (docs/filters.md).", example=WHERE_EXAMPLE)]
Where = Annotated[
    str | dict[str, Any] | None,
    field(description="A filter as text or JSON (docs/filters.md); null: none.", example=WHERE_EXAMPLE),
]
Metadata = Annotated[
    dict[str, Any],
    field(description="A JSON object of at most 8 KB, for your own fields.", example={"city": "Oslo", "stars": 4}),
]
MinRelevance = Annotated[
    Number | None, field(description="Least relevance of each hit, 0 to 1; null: no limit.", minimum=0, maximum=1)
]


class Page(BaseModel, Generic[Body]):
    """A part of a list."""

    # Answers always have a cursor, so their schema requires it.
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    items: list[Body]
    next_cursor: str | None = None


class FilterFields(RequestBody):
    """Filters of memories, which all have to hold. `where` is a text in a query, and a text or JSON in a body."""

    tag: str = field("", "Only memories with this tag, ignoring case.")
    session_id: str | None = field(None, "Only memories of this conversation.")
    scope: ScopeName | None = field(None, "Only notes about this.")
    origin: OriginName | None = field(None, "Only memories of this origin.")
    since: Moment | None = field(None, "Only memories written then or later.")
    until: Moment | None = field(None, "Only memories written before then.")

    def filters(self) -> dict[str, Any]:
        """Return the filters that are set."""
        return {name: value for name in ("where", *FilterFields.model_fields) if (value := getattr(self, name))}


class RecordBody(BaseModel):
    """An answer with the fields of a record; `describes` adds them."""

    model_config = ConfigDict(from_attributes=True)
    record_names: ClassVar[Mapping[str, str]] = {}  # by field that was added, the name in the record

    @classmethod
    def of(cls, record: object, **computed: Any) -> Self:
        """Return the body of a record; `computed` are the fields that it has not."""
        names, read, is_plain = _fields(cls, *computed)
        values = dict(zip(names, read(record), strict=True), **computed)
        if not is_plain:
            return cls.model_validate(values)
        # The types of a record were checked when it was made.
        body = cls.__new__(cls)
        state = {"__dict__": values, "__pydantic_fields_set__": {*values}}
        body.__setstate__({**state, "__pydantic_extra__": None, "__pydantic_private__": None})
        return body


@cache
def _fields(shape: type[RecordBody], *computed: str) -> tuple[Sequence[str], Callable[[object], Sequence[Any]], bool]:
    """Return the fields copied from a record, a getter of their values, and True if the body holds no other."""
    names = tuple(name for name in shape.model_fields if name not in computed)
    read = attrgetter(*(shape.record_names.get(name, name) for name in names))
    is_plain = {*names} <= shape.record_names.keys() and not any(
        _holds_body(each.annotation) for each in shape.model_fields.values()
    )
    return names, read if len(names) > 1 else lambda record: (read(record),), is_plain


def _holds_body(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, BaseModel)) or any(map(_holds_body, get_args(kind)))


Shape = TypeVar("Shape", bound=RecordBody)
BODIES: dict[object, Any] = {}
"""The body of each record that `describes` was given, for the fields of other records."""


def describes(record: type, *, without: Sequence[str] = ()) -> Callable[[type[Shape]], type[Shape]]:
    """Return a decorator that adds the fields of a record to a body, except those that the body declares itself.

    The metadata of a field are the arguments of pydantic's `Field`. With `exclude` it stays inside the library, with
    `alias` it has that name in JSON.
    """

    def add_fields(body: type[Shape]) -> type[Shape]:
        hints, added, names = typing.get_type_hints(record), dict[str, Any](), dict(body.record_names)
        for each in fields(record):
            told = dict(each.metadata)
            name = told.pop("alias", each.name)
            if each.name not in without and name not in body.model_fields and not told.pop("exclude", False):
                added[name] = (_in_json(hints[each.name]), Field(**told))
                names[name] = each.name
        described: Any = pydantic.create_model(
            body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__, **added
        )
        described.record_names = names
        # The fields of the record first, in its order, then those of the body.
        described.__pydantic_fields__ = {name: described.model_fields[name] for name in [*added, *body.model_fields]}
        described.model_rebuild(force=True)
        BODIES.setdefault(record, described)
        return described  # type: ignore[no-any-return]

    return add_fields


def _in_json(kind: Any) -> Any:
    """Return the type of a record's field with the bodies of the records in it."""
    if kind in BODIES:
        return BODIES[kind]
    origin, inner = get_origin(kind), tuple(map(_in_json, get_args(kind)))
    if origin in (UnionType, Union):
        return reduce(or_, inner)
    if origin is Mapping:
        return dict.__class_getitem__(inner)
    return tuple.__class_getitem__(inner) if origin is tuple else kind


def check_origin(origin: str | None) -> None:
    """Check the origin that a body names. Raises: Forbidden when it is trusted more than the key."""
    if origin is not None and origin in [*Origin]:
        check_claim(Origin(origin), current_caller().trust)


class ErrorBody(BaseModel):
    """A refusal or failure."""

    ok: Literal[False] = False
    error: str = field(description="A sentence for people.")
    code: str = field(description="A stable word for programs.", example="not_found")
