"""Calls into code passed in by a user, which may raise anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wellkept.errors import ModelError

T = TypeVar("T")


def call_foreign(what: str, function: Callable[[], T]) -> T:
    """Call `function` and return its result; `what` names the callee in errors. Raises: ModelError."""
    try:
        return function()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The {what} failed ({type(error).__name__}).") from error
