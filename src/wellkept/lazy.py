"""Modules, objects, patterns and methods of dataclasses that are loaded, built or generated on first use.

Importing wellkept does not wait for what a program may never need.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "dataclass", "lazy_class", "lazy_pattern", "zstd", "zstd_options"]


class LazyModule:
    """Proxy for a module, imported on first use. Unlike the standard library's, it is safe for concurrent threads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        # Cached, so that each attribute takes this path only once.
        setattr(self, attribute, found)
        return found


class _LazyObject:
    """Proxy for an object, built on first use."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build, self._built, self._lock = build, None, threading.RLock()

    def _get(self) -> Any:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = self._build()
        return self._built

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._get(), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._get()(*args, **kwargs)


def lazy_class(path: str) -> Any:
    """Return a stand-in for the class at this path; what it returns imports the class and builds on first use."""
    module, _, name = path.rpartition(".")

    def build(*args: Any, **kwargs: Any) -> Any:
        return _LazyObject(lambda: getattr(import_module(module), name)(*args, **kwargs))

    return build


zstd = LazyModule("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
"""Zstandard compression, which the standard library has from Python 3.14 on."""


def zstd_options() -> dict[Any, int]:
    """Return the options of a compressor whose frames have a checksum."""
    return {zstd.CompressionParameter.checksum_flag: 1}


class _LazyPattern:
    """Proxy for a pattern, compiled on first use."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(re.compile(self.pattern, self._flags), attribute)
        setattr(self, attribute, found)
        return found


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return an object with the attributes and methods of a pattern that is compiled on first use."""
    proxy: Any = _LazyPattern(source, flags)
    return proxy  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """Return a decorator like that of the standard library, which generates each method on first use.

        The standard one compiles the source of six methods for each class, which was half of importing wellkept.
        """
        # A subclass needs the methods of its base, and ordered classes are rare.
        is_plain = options.keys() <= {"frozen", "slots", "kw_only"}

        def decorate(cls: type) -> type:
            if not is_plain or hasattr(cls, "__dataclass_fields__"):
                return dataclasses.dataclass(**options)(cls)
            return _postpone_methods(cls, **options)

        return decorate


def _postpone_methods(cls: Any, *, frozen: bool = False, slots: bool = False, kw_only: bool = False) -> type:
    """Turn a class into a dataclass whose methods are generated on first use."""
    # Without a docstring, the standard decorator describes the signature.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    has_hash = "__hash__" in made.__dict__
    for name, options in {"__init__": {"init": True}, "__repr__": {"repr": True}, "__eq__": {"eq": True}}.items():
        if name not in made.__dict__:
            _postpone(made, name, {**options, "frozen": frozen})
    if frozen:
        made.__dataclass_params__.frozen = True
        if not has_hash:
            _postpone(made, "__hash__", {"eq": True, "frozen": True})
        _freeze(made, has_slots=slots)
    elif not has_hash:
        made.__hash__ = None
    made.__signature__ = _Signature()
    return made  # type: ignore[no-any-return]


def _postpone(owner: type, name: str, options: Mapping[str, bool]) -> None:
    """Set a method that replaces itself by the generated one when it is called."""

    def method(self: object, *args: object, **kwargs: object) -> Any:
        generated = _generate(owner, name, options)
        # Two threads may both get here; they generate the same.
        setattr(owner, name, generated)
        return generated(self, *args, **kwargs)

    setattr(owner, name, method)


def _generate(owner: type, name: str, options: Mapping[str, bool]) -> Any:
    """Let the standard library generate a method, for a class that has the same fields."""
    fields = dataclasses.fields(owner)
    namespace: dict[str, Any] = {each.name: copy(each) for each in fields}
    namespace["__annotations__"] = {each.name: each.type for each in fields}
    namespace |= {
        key: getattr(owner, key) for key in ("__module__", "__qualname__", "__post_init__") if hasattr(owner, key)
    }
    only = {"init": False, "repr": False, "eq": False, "match_args": False, **options}
    twin: type = dataclasses.dataclass(**only)(type(owner.__name__, (), {**namespace, "__doc__": owner.__doc__}))
    return twin.__dict__[name]


def _freeze(cls: Any, *, has_slots: bool) -> None:
    """Refuse to assign to fields, as the standard library does."""
    names = tuple(cls.__dataclass_fields__)

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute
    if has_slots:
        # Without them, copies and pickles would assign to the fields.
        cls.__getstate__, cls.__setstate__ = _get_state, _set_state


def _get_state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: list[object]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _Signature:
    """Signature of a dataclass, for `inspect.signature` and `help`."""

    def __get__(self, instance: object, owner: type) -> Any:
        inspect = import_module("inspect")
        full = inspect.signature(_generate(owner, "__init__", {"init": True}))
        return full.replace(parameters=list(full.parameters.values())[1:])
