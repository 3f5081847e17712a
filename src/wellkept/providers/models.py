"""Models for each purpose, and the wrapper that checks their answers and limits their time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from wellkept.errors import Invalid, ModelError
from wellkept.extension import Model, Models
from wellkept.language.text import clean_text
from wellkept.model import Json
from wellkept.program import advise_install
from wellkept.providers.foreign import call_foreign
from wellkept.settings import Settings

NOT_A_MODEL = (
    "A model has a name (str) and a method complete(messages, *, max_tokens, timeout) -> str, or is a function that "
    "takes the messages and returns text."
)
DEFAULT_TIMEOUT = 60.0
GRACE = 1.0
"""Extra seconds for a model to report its own timeout."""

GivenModel = Model | Callable[[Sequence[Json]], str]


def open_models(settings: Settings, model: GivenModel | None = None) -> Models:
    """Open the models of the settings, or use the given one for every purpose, without calling any. Raises: Invalid."""
    if model is not None:
        one = CheckedModel(model)
        return Models(main=one, summary=one, fast=one)
    return Models(
        main=_open_model(settings, ""), summary=_open_model(settings, "summary"), fast=_open_model(settings, "fast")
    )


def _open_model(settings: Settings, role: str) -> Model | None:
    """Open the model of a role; options not set for it default to those of the main model."""
    prefix = f"openai_{role}_" if role else "openai_"
    options = {
        name: getattr(settings, f"{prefix}{name}") or getattr(settings, f"openai_{name}")
        for name in ("model", "api_key", "base_url")
    }
    if not options["model"]:
        return None
    try:
        make: Any = import_module("wellkept.providers.openai_model").OpenAIModel
    except ModuleNotFoundError as error:
        raise Invalid(f"A model needs the package {error.name!r}; {advise_install('openai')}") from error
    is_own = {name: bool(role and getattr(settings, f"{prefix}{name}")) for name in ("base_url", "api_key")}
    return CheckedModel(
        make(
            options["model"],
            options["api_key"],
            options["base_url"],
            timeout=settings.openai_timeout,
            url_setting=f"{prefix if is_own['base_url'] else 'openai_'}base_url",
            key_setting=f"{prefix if is_own['api_key'] else 'openai_'}api_key",
        ),
        timeout=settings.openai_timeout,
    )


class CheckedModel:
    """Wrapper of any model or function: raises ModelError on failure, and returns text that can be stored.

    Each call runs on its own thread, so that a hanging model blocks the caller no longer than its timeout.
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
        """Return the answer of the model. Raises: ModelError."""
        seconds = self._timeout if timeout is None else timeout
        outcome: list[object] = []

        def ask() -> None:
            try:
                outcome.append(
                    call_foreign(
                        f"model {self.name!r}",
                        lambda: self._complete(list(messages), max_tokens=max_tokens, timeout=seconds),
                    )
                )
            except ModelError as error:
                outcome.append(error)

        thread = threading.Thread(target=ask, name="wellkept-model", daemon=True)
        thread.start()
        thread.join(seconds + GRACE)
        if not outcome:
            raise ModelError(f"The model {self.name!r} did not answer in time.")
        answer = outcome[0]
        if isinstance(answer, ModelError):
            raise answer
        if not isinstance(answer, str):
            raise ModelError(f"The model {self.name!r} should have answered with text, not {type(answer).__name__}.")
        return clean_text(answer)
