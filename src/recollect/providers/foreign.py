"""Calling what a user brought along: it is anybody's code, and whatever it raises, it failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from recollect.errors import ModelError

T = TypeVar("T")


def asked(what: str, question: Callable[[], T]) -> T:
    """What `question` answers; `what` names who was asked.

    Raises: ModelError.
    """
    try:
        return question()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The {what} failed ({type(error).__name__}).") from error
