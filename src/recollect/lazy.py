"""Modules that are imported when something is first asked of them.

For rules whose tables take long to build: a program that only imports recollect does not wait for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until it is used. Unlike the standard library's, it may be used from many threads at once."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)  # a write asks for dozens; each comes here only once
        return found
