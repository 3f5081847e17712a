"""Construction of embedders by name, and the wrapper that checks their answers.

The modules behind the names are imported on demand: they need NumPy or optional packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wellkept.errors import Invalid, ModelError
from wellkept.extension import Embedder
from wellkept.model.stored import Vector
from wellkept.providers.foreign import call_foreign

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        return CheckedEmbedder(
            _make("wellkept.providers.openai_embedder", "OpenAIEmbedder", argument, api_key, base_url)
        )
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
