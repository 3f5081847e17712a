"""Which embedder a name stands for, and the wrapper that holds any embedder to its word.

The modules behind the names are imported only when asked for: they bring NumPy or optional packages with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.errors import Invalid, ModelError
from recollect.ports import Embedder, Vector
from recollect.providers.foreign import asked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHOICES = "static, off, openai:<model> or onnx:<folder>"
NOT_AN_EMBEDDER = "An embedder has a name (str), dimensions (int) and a method embed(texts) -> array."


def open_embedder(choice: str, *, api_key: str = "", base_url: str = "") -> Embedder | None:
    """The embedder a setting names; None for "off".

    Raises: Invalid.
    """
    name, _, argument = choice.partition(":")
    if choice == "off":
        return None
    if choice == "static":
        return _made("recollect.providers.static", "StaticEmbedder")
    if name == "openai" and argument:
        return _made("recollect.providers.openai_embedder", "OpenAIEmbedder", argument, api_key, base_url)
    if name == "onnx" and argument:
        return _made("recollect.providers.onnx_embedder", "OnnxEmbedder", argument)
    raise Invalid(f"There is no embedder {choice!r}; choose {CHOICES}.")


def _made(module: str, name: str, *arguments: str) -> Embedder:
    try:
        make: Callable[..., Embedder] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise Invalid(f"This embedder needs the package {error.name!r}, which is not installed.") from error
    return make(*arguments)


class CheckedEmbedder:
    """Any embedder, its answers checked and made unit length, its failures turned into ModelError.

    A remote embedder is not asked anything before it is first used: its endpoint may be down, and memory works on.
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
        self._dimensions = None if self.is_remote else _checked_dimensions(getattr(embedder, "dimensions", None))

    @property
    def dimensions(self) -> int:
        """Raises: ModelError when a remote embedder has to be asked, and fails."""
        if self._dimensions is None:
            self._dimensions = _checked_dimensions(self._ask(lambda: self._embedder.dimensions))
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises: ModelError."""
        if not texts:
            return self._numpy.empty((0, self.dimensions), self._numpy.float32)  # type: ignore[no-any-return]
        return self._checked(self._ask(lambda: self._embedder.embed(texts)), len(texts))

    def embed_query(self, text: str) -> Vector:
        """The vector to search with, by the embedder's own `embed_query` if it has one.

        Raises: ModelError.
        """
        ask = getattr(self._embedder, "embed_query", None)
        answer = self._ask(lambda: self._embedder.embed([text]) if ask is None else [ask(text)])
        return self._checked(answer, 1)[0]  # type: ignore[no-any-return]

    def _ask(self, question: Callable[[], Any]) -> Any:
        return asked(f"embedder {self.name!r}", question)

    def _checked(self, answer: Any, count: int) -> NDArray[np.float32]:
        matrix = self._ask(lambda: self._numpy.asarray(answer, dtype=self._numpy.float32))
        # Looked up after the answer: a remote embedder has learned its dimensions from it, and need not be asked again.
        if matrix.shape != (count, self.dimensions) or not self._numpy.isfinite(matrix).all():
            expected = f"{count} vectors of {self.dimensions} finite numbers"
            raise ModelError(f"The embedder {self.name!r} should have answered with {expected}, and did not.")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / self._numpy.where(lengths > 0, lengths, 1)  # type: ignore[no-any-return]


def _checked_dimensions(dimensions: object) -> int:
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
        raise Invalid(NOT_AN_EMBEDDER)
    return dimensions
