"""Check the arguments of public methods against their annotations, so that a wrong type is refused in a sentence.

The public methods of a class that derives from `CheckedMethods` are checked; `checked` does it for a single function.
The checks are compiled when a function is first called. What a value means, such as its range, is checked where it is
used. Some rules go beyond the annotations:

- A string has no NUL character and no half of a surrogate pair, because no engine can store them. `RawText` may.
- A number is finite, and True is no number. A time has a zone.
- A string, bytes or a mapping is no list of things. What an `Iterable` holds, which can perhaps be read only once, is
  checked by who reads it.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import wraps
from io import TextIOBase
from math import isfinite
from typing import (
    IO,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from wellkept.errors import Invalid

P = ParamSpec("P")
T = TypeVar("T")

RawText = Annotated[str, "raw"]
"""String with any characters, for texts that are cleaned before they are stored."""

FORMER = {
    "min_score": "There is no `min_score` any more; give recall, context or a search of documents `min_relevance`, the "
    "least relevance of a hit, 0 to 1."
}
"""Refusals of arguments, fields and options that have another name and meaning now."""

MAX_DESCRIBED = 3
"""Number of elements that an error describes."""


class Shape(NamedTuple):
    """Requirement of an argument: a predicate, and its description."""

    accepts: Callable[[Any], bool]
    wanted: str


def refuse_former(names: Iterable[str]) -> None:
    """Refuse a name that has been replaced. Raises: Invalid."""
    for name in names:
        if name in FORMER:
            raise Invalid(FORMER[name])


def is_storable(text: str) -> bool:
    """Return True if every engine can store `text` unchanged."""
    try:
        return "\x00" not in text and (text.isascii() or text.encode() is not None)
    except UnicodeEncodeError:
        return False


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_storable(value)


def _is_path(value: Any) -> bool:
    # A file's name may hold bytes that are not UTF-8, which Python shows as halves of surrogate pairs.
    try:
        return isinstance(value, str | os.PathLike) and b"\x00" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or (isinstance(value, float) and isfinite(value))


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, datetime) and value.utcoffset() is not None
    except (NotImplementedError, TypeError, ValueError):
        # The class of the zone does not tell an offset.
        return False


def _is_file(value: object) -> bool:
    return hasattr(value, "read") or hasattr(value, "write")


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict | Mapping) and all(isinstance(key, str) for key in value)


ANYTHING = Shape(lambda value: True, "anything")
TEXT = Shape(_is_text, "a string")
PATH = Shape(_is_path, "a path")
BINARY_FILE = Shape(lambda value: _is_file(value) and not isinstance(value, TextIOBase), "a file opened in binary mode")
MAPPING = Shape(_is_mapping, "a mapping")
PLAIN: Mapping[Any, Shape] = {
    Any: ANYTHING,
    str: TEXT,
    RawText: Shape(lambda value: isinstance(value, str), "a string"),
    bool: Shape(lambda value: isinstance(value, bool), "True or False"),
    int: Shape(_is_whole, "a whole number"),
    float: Shape(_is_number, "a number"),
    datetime: Shape(_is_moment, "a time with a zone"),
    types.NoneType: Shape(lambda value: value is None, "None"),
}


def compile_shape(hint: Any) -> Shape:
    """Return what an annotation asks for; ANYTHING for what a value does not tell."""
    if hint in PLAIN:
        return PLAIN[hint]
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        # The text describes what is wanted better than the names of its types.
        return Shape(compile_shape(inner[0]).accepts, inner[1])
    if kind in (Union, types.UnionType):
        return _compile_union(inner)
    if kind is Literal:
        return (
            TEXT
            if isinstance(inner[0], str)
            else Shape(lambda value: any(value is each for each in inner), str(inner[0]))
        )
    if kind is Callable:
        return Shape(callable, "a function")
    if not isinstance(kind, type):
        return ANYTHING
    if getattr(kind, "_is_protocol", False):
        return _compile_protocol(kind)
    if issubclass(kind, StrEnum):
        return TEXT
    if issubclass(kind, os.PathLike):
        return PATH
    if kind is IO:
        return BINARY_FILE if inner == (bytes,) else Shape(_is_file, "an open file")
    if issubclass(kind, Mapping):
        return MAPPING
    if kind is tuple and Ellipsis not in inner:
        return _compile_tuple([compile_shape(each) for each in inner])
    if inner and issubclass(kind, Iterable):
        return _compile_list(kind, ANYTHING if kind is Iterable else compile_shape(inner[0]))
    return Shape(lambda value: isinstance(value, kind), kind.__name__)


def _compile_union(hints: Iterable[Any]) -> Shape:
    shapes = {shape.wanted: shape for shape in map(compile_shape, hints)}
    if ANYTHING.wanted in shapes:
        return ANYTHING
    if PATH.wanted in shapes and shapes.get(TEXT.wanted) is TEXT:
        shapes[TEXT.wanted] = PATH
    predicates = [shape.accepts for shape in shapes.values()]
    # None means that an argument was not given, so an error does not ask for it.
    wanted = " or ".join(each for each in shapes if each != "None")
    # Most have one or two, for which a generator would take longer than the checks.
    if len(predicates) <= 2:
        first, second = predicates[0], predicates[-1]
        return Shape(first if first is second else lambda value: first(value) or second(value), wanted)
    return Shape(lambda value: any(accepts(value) for accepts in predicates), wanted)


def _compile_list(kind: type, each: Shape) -> Shape:
    accepts = each.accepts

    def is_list(value: Any) -> bool:
        is_one = isinstance(value, list) or (
            isinstance(value, kind) and not isinstance(value, str | bytes | bytearray | Mapping)
        )
        return is_one and (each is ANYTHING or all(accepts(part) for part in value))

    many = each.wanted if each.wanted[0] == "(" else each.wanted.replace("a ", "").replace(" or ", "s or ") + "s"
    return Shape(is_list, "a list" if each is ANYTHING else f"a list of {many}")


def _compile_protocol(kind: type) -> Shape:
    # Attributes that are no methods may take long to compute.
    methods = [name for name, member in vars(kind).items() if isinstance(member, types.FunctionType) and name[0] != "_"]
    return Shape(lambda value: all(hasattr(value, each) for each in methods), f"an object with {', '.join(methods)}")


def _compile_tuple(parts: list[Shape]) -> Shape:
    def is_tuple(value: Any) -> bool:
        is_pair = isinstance(value, tuple | list) and len(value) == len(parts)
        return is_pair and all(part.accepts(each) for part, each in zip(parts, value, strict=True))

    return Shape(is_tuple, f"({', '.join(part.wanted for part in parts)})")


class Arguments:
    """The checks of a function's arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._positional: tuple[Shape, ...] = ()
        self._named: Mapping[str, Shape] = {}

    def check(self, args: Iterable[Any], named: Mapping[str, Any]) -> None:
        """Check what a call is given; what is missing or unknown is left to Python. Raises: Invalid."""
        if not self._named:
            self._compile()
        for position, value in enumerate(args):
            if position < len(self._positional) and not self._positional[position].accepts(value):
                names = list(self._named)
                raise _refuse(names[position], self._positional[position], value)
        for name, value in named.items():
            shape = self._named.get(name)
            if shape is None:
                refuse_former([name])
            elif not shape.accepts(value):
                raise _refuse(name, shape, value)

    def _compile(self) -> None:
        code, hints = self._function.__code__, get_type_hints(self._function, include_extras=True)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        named = {name: compile_shape(hints.get(name, Any)) for name in names}
        rest = [hint for name, hint in hints.items() if get_origin(hint) is Unpack]
        for hint in rest:
            fields = get_type_hints(get_args(hint)[0], include_extras=True)
            named |= {name: compile_shape(field) for name, field in fields.items()}
        # Two threads may both get here; they compile the same.
        self._positional = tuple(named.values())[: code.co_argcount]
        self._named = named


def _refuse(name: str, shape: Shape, given: object) -> Invalid:
    return Invalid(f"`{name}` must be {shape.wanted}, not {describe(given)}.")


def describe(value: object, *, is_inner: bool = False) -> str:
    """Describe a value that was refused, without quoting it: it may be a secret.

    >>> describe(5), describe(["a", 5, None]), describe(float("nan")), describe("a" + chr(0))
    ('int', 'a list of str, int, None', 'nan', 'one with a NUL character (U+0000)')
    """
    match value:
        case str() if "\x00" in value:
            return "one with a NUL character (U+0000)"
        case str() if not is_storable(value):
            return "one with half a surrogate pair"
        case float() if not isfinite(value):
            return str(value)
        case datetime():
            return "one without a zone"
        case None:
            return "None"
        case list() | tuple() | set() | frozenset() | dict() if value and not is_inner:
            inner = dict.fromkeys(describe(each, is_inner=True) for each in value)
            joined = ", ".join(list(inner)[:MAX_DESCRIBED])
            return (
                f"a dict with {joined} as names" if isinstance(value, dict) else f"a {type(value).__name__} of {joined}"
            )
    return type(value).__name__


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that its arguments are checked when it is called."""
    arguments = Arguments(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        arguments.check(args, kwargs)
        return function(*args, **kwargs)

    call.arguments = arguments  # type: ignore[attr-defined]
    return call


def check_fields(function: Any, fields: Mapping[str, Any]) -> None:
    """Check a mapping of a checked function's arguments. Raises: Invalid."""
    function.arguments.check((), fields)


class CheckedMethods:
    """Base class whose subclasses have their public methods checked."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, method in list(vars(cls).items()):
            if isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(checked(method.__func__)))
            elif isinstance(method, types.FunctionType) and name[0] != "_" and not hasattr(method, "arguments"):
                has_arguments = method.__annotations__.keys() != {"return"}
                setattr(cls, name, checked(method) if has_arguments else method)
