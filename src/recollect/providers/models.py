"""Which model serves which purpose, and the wrapper that holds any model to its word and to its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from recollect.errors import Invalid, ModelError
from recollect.model import Json
from recollect.ports import Model, Models
from recollect.providers.foreign import asked
from recollect.settings import Settings

NOT_A_MODEL = (
    "A model has a name (str) and a method complete(messages, *, max_tokens, timeout) -> str, or is a function that "
    "takes the messages and returns text."
)
DEFAULT_TIMEOUT = 60.0
GRACE = 1.0
"""Seconds a model is given beyond its time to say itself that it ran out of it."""

GivenModel = Model | Callable[[Sequence[Json]], str]


def open_models(settings: Settings, given: GivenModel | None = None) -> Models:
    """The models the settings name, or the one that was given, for every purpose. None is asked anything yet.

    Raises: Invalid.
    """
    if given is not None:
        one = CheckedModel(given)
        return Models(main=one, summary=one, fast=one)
    return Models(main=_opened(settings, ""), summary=_opened(settings, "summary"), fast=_opened(settings, "fast"))


def _opened(settings: Settings, role: str) -> Model | None:
    """The model of a role; what is not set for it is as for the main one."""
    prefix = f"openai_{role}_" if role else "openai_"
    chosen = {
        name: getattr(settings, f"{prefix}{name}") or getattr(settings, f"openai_{name}")
        for name in ("model", "api_key", "base_url", "timeout")
    }
    if not chosen["model"]:
        return None
    try:
        make: Any = import_module("recollect.providers.openai_model").OpenAIModel
    except ModuleNotFoundError as error:
        raise Invalid(f"A model needs the package {error.name!r}; run: pip install 'recollect[openai]'") from error
    is_own = {name: bool(role and getattr(settings, f"{prefix}{name}")) for name in ("base_url", "api_key")}
    return CheckedModel(
        make(
            chosen["model"],
            chosen["api_key"],
            chosen["base_url"],
            timeout=chosen["timeout"],
            url_setting=f"{prefix if is_own['base_url'] else 'openai_'}base_url",
            key_setting=f"{prefix if is_own['api_key'] else 'openai_'}api_key",
        ),
        timeout=chosen["timeout"],
    )


class CheckedModel:
    """Any model or function, its failures turned into ModelError, its answers into text that can be stored.

    It is asked on a thread of its own, so that one that never answers holds up nobody beyond its time.
    """

    def __init__(self, model: GivenModel, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Raises: Invalid."""
        complete = getattr(model, "complete", None)
        if callable(complete):
            self._complete: Callable[..., object] = complete
        elif callable(model):
            self._complete = lambda messages, *, max_tokens, timeout: model(messages)
        else:
            raise Invalid(NOT_A_MODEL)
        name = getattr(model, "name", None) or getattr(model, "__name__", None) or type(model).__name__
        self.name = str(name)
        self._timeout = timeout

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Raises: ModelError."""
        seconds = self._timeout if timeout is None else timeout
        outcome: list[object] = []

        def ask() -> None:
            try:
                outcome.append(
                    asked(
                        f"model {self.name!r}",
                        lambda: self._complete(list(messages), max_tokens=max_tokens, timeout=seconds),
                    )
                )
            except ModelError as error:
                outcome.append(error)

        thread = threading.Thread(target=ask, name="recollect-model", daemon=True)
        thread.start()
        thread.join(seconds + GRACE)
        if not outcome:
            raise ModelError(f"The model {self.name!r} did not answer in time.")
        answer = outcome[0]
        if isinstance(answer, ModelError):
            raise answer
        if not isinstance(answer, str):
            raise ModelError(f"The model {self.name!r} should have answered with text, not {type(answer).__name__}.")
        return answer.replace("\x00", "").encode("utf-8", "replace").decode()
