"""Shapes that several groups of routes share.

Shapes check types; the library checks rules, because it explains refusals best. The limits and choices in the OpenAPI
document come from the library's own tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache, reduce
from operator import attrgetter, or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.requests import Request

from wellkept.api.agent import ANY_STATE, MAX_PAGE, PAGE
from wellkept.arguments import FORMER
from wellkept.caller import current_caller
from wellkept.errors import Invalid
from wellkept.language.names import MAX_USER_CHARS
from wellkept.memory.rules_trust import check_claim
from wellkept.model import KeyScope, Kind, Origin, Role, Scope, State
from wellkept.prompt.rules_relevance import InjectMode
from wellkept.recall.rules_ranking import PURPOSES
from wellkept.server.http.routing import USER


def one_of(values: Iterable[str]) -> Any:
    """Return a field that documents the choices; the library refuses others."""
    return Field(json_schema_extra={"enum": [*values]})


def _iso_text(value: object) -> object:
    if not isinstance(value, str) or "T" not in value.upper():
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_iso_text)]
Number = Annotated[float, Strict()]
MinRelevance = Annotated[
    Number | None,
    Field(
        description="Least relevance of each hit, 0 to 1; null: no limit.",
        json_schema_extra={"minimum": 0, "maximum": 1},
    ),
]
KindName = Annotated[str, one_of(Kind)]
ScopeName = Annotated[str, one_of(Scope)]
RoleName = Annotated[str, one_of(Role)]
OriginName = Annotated[str, one_of(Origin)]
StateName = Annotated[str, one_of([*State, ANY_STATE])]
KeyScopeName = Annotated[str, one_of(KeyScope)]
PurposeName = Annotated[str, one_of(PURPOSES)]
ModeName = Annotated[str, one_of(InjectMode)]


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

    @model_validator(mode="before")
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
    Field(
        description="The end user it acts for, as in X-Wellkept-User; null: the user of the key, or none.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_USER_CHARS},
        examples=["u-7"],
    ),
]


class Paging(RequestBody):
    """Size and start of a page."""

    is_query: ClassVar[bool] = True
    limit: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PAGE})] = PAGE
    cursor: Annotated[str, Field(description="The `next_cursor` of the previous page.")] = ""


WHERE_EXAMPLE = "tags = food and metadata.city = 'Oslo' and created_at > 2026-10-01"
WhereText = Annotated[str, Field(description="A filter (docs/filters.md).", examples=[WHERE_EXAMPLE])]
Where = Annotated[
    str | dict[str, Any] | None,
    Field(description="A filter as text or JSON (docs/filters.md); null: none.", examples=[WHERE_EXAMPLE]),
]
Metadata = Annotated[
    dict[str, Any],
    Field(description="A JSON object of at most 8 KB, for your own fields.", examples=[{"city": "Oslo", "stars": 4}]),
]


class Page(BaseModel, Generic[Body]):
    """A part of a list."""

    # Answers always have a cursor, so their schema requires it.
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    items: list[Body]
    next_cursor: str | None = None


class FilterFields(RequestBody):
    """Filters of memories, which all have to hold. `where` is a text in a query, and a text or JSON in a body."""

    tag: Annotated[str, Field(description="Only memories with this tag, ignoring case.")] = ""
    session_id: Annotated[str | None, Field(description="Only memories of this conversation.")] = None
    scope: Annotated[ScopeName | None, Field(description="Only notes about this.")] = None
    origin: Annotated[OriginName | None, Field(description="Only memories of this origin.")] = None
    since: Annotated[Moment | None, Field(description="Only memories written then or later.")] = None
    until: Annotated[Moment | None, Field(description="Only memories written before then.")] = None

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
        hints, added, names = get_type_hints(record), dict[str, Any](), dict(body.record_names)
        for each in fields(record):
            told = dict(each.metadata)
            name = told.pop("alias", each.name)
            if each.name not in without and name not in body.model_fields and not told.pop("exclude", False):
                added[name] = (_in_json(hints[each.name]), Field(**told))
                names[name] = each.name
        described: Any = create_model(
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
    error: Annotated[str, Field(description="A sentence for people.")]
    code: Annotated[str, Field(description="A stable word for programs.", examples=["not_found"])]
