"""Construction of embedders and models by name, and the wrappers that check their answers and limit their time.

The modules behind the names are imported on demand: they need NumPy or optional packages. Code of others may raise
anything, and native code must end before the program does.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from wellkept.errors import Invalid, ModelError
from wellkept.extension import Embedder, Model, Models
from wellkept.language.text import clean_text
from wellkept.model import Json
from wellkept.model.stored import Vector
from wellkept.program import advise_install
from wellkept.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def call_foreign(what: str, function: Callable[[], T]) -> T:
    """Call `function` and return its result; `what` names the callee in errors. Raises: ModelError."""
    try:
        return function()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The {what} failed ({type(error).__name__}).") from error


class NativeCalls:
    """Calls into a library of C++, which aborts the whole program if Python ends one of its threads inside them.

    At exit Python ends every daemon thread that comes back from such a call, so a program waits for the calls that run,
    and begins no more.
    """

    def __init__(self) -> None:
        self._reset()
        atexit.register(self._close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Call `function` like `call_foreign`. Raises: ModelError, also when the program is ending."""
        with self._changed:
            if self._is_closed:
                raise ModelError(f"The {what} is not asked any more: the program is ending.")
            self._running += 1
        try:
            return call_foreign(what, function)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._running)

    def _reset(self) -> None:
        """Start anew: in a forked process, other threads do not go on."""
        self._changed, self._running, self._is_closed = threading.Condition(), 0, False


NATIVE_CALLS = NativeCalls()


CHOICES = "minilm, off, openai:<model> or onnx:<folder>"
NOT_AN_EMBEDDER = "An embedder has a name (str), dimensions (int) and a method embed(texts) -> array."


def open_embedder(choice: str, *, api_key: str = "", base_url: str = "") -> Embedder | None:
    """Return the embedder a setting names, checked unless it is our own; None for "off". Raises: Invalid."""
    name, _, argument = choice.partition(":")
    if choice == "off":
        return None
    if choice == "minilm":
        return _make("wellkept.providers.minilm", "MiniLMEmbedder")
    if name == "openai" and argument:
        return CheckedEmbedder(_make("wellkept.providers.openai", "OpenAIEmbedder", argument, api_key, base_url))
    if name == "onnx" and argument:
        return CheckedEmbedder(_make("wellkept.providers.onnx_embedder", "OnnxEmbedder", argument))
    raise Invalid(f"There is no embedder {choice!r}; choose {CHOICES}.")


def _make(module: str, name: str, *arguments: str) -> Embedder:
    try:
        make: Callable[..., Embedder] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise Invalid(f"This embedder needs the package {error.name!r}, which is not installed.") from error
    return make(*arguments)


class CheckedEmbedder:
    """Wrapper of any embedder: checks its answers, scales vectors to unit length, raises ModelError on failure.

    A remote embedder is not called before its first use: its endpoint may be down, and memory works without it.
    """

    def __init__(self, embedder: Embedder) -> None:
        """Raises: Invalid."""
        name = getattr(embedder, "name", None)
        if not isinstance(name, str) or not name or not callable(getattr(embedder, "embed", None)):
            raise Invalid(NOT_AN_EMBEDDER)
        self.name = name
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self.is_builtin = bool(getattr(embedder, "is_builtin", False))
        self._embedder = embedder
        self._numpy = import_module("numpy")
        self._dimensions = None if self.is_remote else _check_dimensions(getattr(embedder, "dimensions", None))

    @property
    def dimensions(self) -> int:
        """Length of the vectors. Raises: ModelError when a remote embedder has to be called and fails."""
        if self._dimensions is None:
            self._dimensions = _check_dimensions(self._ask(lambda: self._embedder.dimensions))
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector for each text. Raises: ModelError."""
        if not texts:
            return self._numpy.empty((0, self.dimensions), self._numpy.float32)  # type: ignore[no-any-return]
        return self._check_vectors(self._ask(lambda: self._embedder.embed(texts)), len(texts))

    def embed_query(self, text: str) -> Vector:
        """Return the vector to search with, by the embedder's own `embed_query` if it has one. Raises: ModelError."""
        ask = getattr(self._embedder, "embed_query", None)
        answer = self._ask(lambda: self._embedder.embed([text]) if ask is None else [ask(text)])
        return self._check_vectors(answer, 1)[0]  # type: ignore[no-any-return]

    def _ask(self, question: Callable[[], Any]) -> Any:
        return call_foreign(f"embedder {self.name!r}", question)

    def _check_vectors(self, answer: Any, count: int) -> NDArray[np.float32]:
        matrix = self._ask(lambda: self._numpy.asarray(answer, dtype=self._numpy.float32))
        # Read `dimensions` after the answer: a remote embedder learns them from it and needs no second call.
        if matrix.shape != (count, self.dimensions) or not self._numpy.isfinite(matrix).all():
            expected = f"{count} vectors of {self.dimensions} finite numbers"
            raise ModelError(f"The embedder {self.name!r} did not return {expected}.")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / self._numpy.where(lengths > 0, lengths, 1)  # type: ignore[no-any-return]


def _check_dimensions(dimensions: object) -> int:
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
        raise Invalid(NOT_AN_EMBEDDER)
    return dimensions


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
        make: Any = import_module("wellkept.providers.openai").OpenAIModel
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
