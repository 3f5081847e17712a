"""Types, bounds and texts of settings."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from wellkept.errors import Invalid

T = TypeVar("T")

HIGHEST = 1_000_000_000
"""Default upper bound of numbers: within the range of every engine and timer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """Definition of one setting: a row of the documentation's table, and how each source matches and checks it."""

    name: str
    default: str
    meaning: str
    aliases: tuple[str, ...]
    environment: tuple[str, ...]  # the first one that is set wins
    kind: object  # the annotated type
    is_secret: bool
    low: float
    high: float


def setting(
    default: T, meaning: str, *names: str, is_secret: bool = False, low: float = -math.inf, high: float = HIGHEST
) -> T:
    """Define a field of `Settings`; `low` and `high` bound its number.

    `names` are other names of it: those in files, and in capitals those of environment variables.
    """
    others = {"aliases": [each for each in names if not each.isupper()], "environment": filter(str.isupper, names)}
    metadata = {name: tuple(found) for name, found in others.items()} | {"meaning": meaning, "is_secret": is_secret}
    return field(default=default, metadata=metadata | {"low": low, "high": high})


VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that limit the threads of numeric libraries."""


def use_one_thread_each() -> None:
    """Make numeric libraries multiply on the calling thread, unless the user has set a number of threads.

    For programs of our own, such as `wellkept serve`: idle library threads spin and take processor time from others.
    How much depends on the load of the machine; decisions/ has figures.
    """
    for name in VARIABLES:
        os.environ.setdefault(name, "1")


def load_numpy_with_one_thread() -> None:
    """Import NumPy so that it multiplies on the calling thread, for programs that ask one question and end.

    Starting its threads takes longer than they save. The environment is the same afterwards, because programs that
    this one starts inherit it.
    """
    before = {name: os.environ.get(name) for name in VARIABLES}
    use_one_thread_each()
    import_module("numpy")
    for name, value in before.items():
        if value is None:
            del os.environ[name]


def share_metrics(folder: Path) -> None:
    """Make worker processes that are started from now on keep their Prometheus metrics in `folder`, for all to read."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


MASK = "***"


def convert_value(value: object, known: SettingRow, *, source: str, key: str) -> object:
    """Convert a value to the type of its setting.

    Raises: Invalid, which shows the value (unless it is a secret) and what is expected.
    """
    kinds = [each for each in get_args(known.kind) if each is not NoneType]
    is_optional = len(kinds) < len(get_args(known.kind))
    if is_optional and value == "":
        return None
    kind = kinds[0] if is_optional else known.kind
    expected, accepted, convert = _choice_conversion(kind) if get_origin(kind) is Literal else _KINDS[kind]
    if kind in (int, float):
        expected += f" from {known.low} to {known.high}"
    refusal = Invalid(f"{source}: {key} was given {render_value(value, known)}; expected {expected}.")
    # bool is a subclass of int, so it needs its own check.
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise refusal
    try:
        converted = convert(value)
    except (KeyError, ValueError, OverflowError):
        # Without its cause, which would quote the value.
        raise refusal from None
    if isinstance(converted, (int, float)) and not (math.isfinite(converted) and known.low <= converted <= known.high):
        raise refusal
    return converted


def render_value(value: object, known: SettingRow) -> str:
    """Render a value without secrets and without passwords in URLs."""
    if known.is_secret and value:
        return MASK
    return masked(repr(value))


def masked(text: str) -> str:
    """Mask the password of any URL in `text`.

    >>> masked("postgresql://app:hunter2@db/memories")
    'postgresql://app:***@db/memories'
    """
    without_password = re.sub(r"(://[^:/\s]*:)\S*@", rf"\1{MASK}@", text)
    return re.sub(r"([?&]password=)[^&'\"\s]*", rf"\1{MASK}", without_password)


def render_default(value: object) -> str:
    """Render a default for the documentation."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _parse_list(value: str | Sequence[object]) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not all(isinstance(item, str) for item in items):
        raise ValueError("not all items are text")
    return tuple(text for item in items if (text := str(item).strip()))


def _choice_conversion(kind: object) -> _Conversion:
    choices = {each: each for each in get_args(kind)}
    return "one of " + ", ".join(f'"{each}"' for each in choices), (str,), choices.__getitem__


# Description of the expected value, accepted types, conversion.
_Conversion = tuple[str, tuple[type, ...], Callable[[Any], object]]
_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_KINDS: Mapping[object, _Conversion] = {
    str: ("text (in quotes)", (str,), str),
    int: ("a whole number", (int, str), int),
    float: ("a number", (int, float, str), float),
    bool: ("true or false", (bool, str), lambda value: _WORDS[str(value).strip().lower()]),
    Path: ("a path", (str, Path), lambda value: Path(value).expanduser()),
    tuple[str, ...]: ("a list of words", (str, list, tuple), _parse_list),
}


HEAPS = 2
"""Heaps to share."""
M_ARENA_MAX = -8
"""Constant of that option in glibc's malloc.h."""


def share_heaps() -> None:
    """Limit glibc to a few malloc heaps, unless the user has set a number. Call it before threads start.

    By default glibc gives threads their own heaps, and memory freed in one is not reused by the others. Measured on two
    cores under load, the server peaked at 408 to 450 MB without this and at 271 MB with two heaps.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # musl has no mallopt.
        with suppress(AttributeError):
            import_module("ctypes").CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def load_onnxruntime() -> ModuleType:
    """Import onnxruntime without the thread by which it would report to its maker. Raises: ImportError.

    Nothing here reports to anybody. Besides, a process that forks while that thread runs has children that never end.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_module("onnxruntime")
