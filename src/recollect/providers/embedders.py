"""Which embedder a name stands for, and the wrapper that holds any embedder to its word.

The modules behind the names are imported only when asked for: they bring NumPy or optional packages with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.errors import Invalid, ModelError
from recollect.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHOICES = "static, off, openai:<model> or onnx:<folder>"


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
    """Any embedder, its answers checked and made unit length, its failures turned into ModelError."""

    def __init__(self, embedder: Embedder) -> None:
        """Raises: Invalid."""
        name, dimensions = getattr(embedder, "name", None), getattr(embedder, "dimensions", None)
        if not isinstance(name, str) or not name or not isinstance(dimensions, int) or dimensions < 1:
            raise Invalid("An embedder has a name (str), dimensions (int) and a method embed(texts) -> array.")
        self.name = name
        self.dimensions = dimensions
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self._embedder = embedder
        self._numpy = import_module("numpy")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises: ModelError."""
        if not texts:
            return self._numpy.empty((0, self.dimensions), self._numpy.float32)  # type: ignore[no-any-return]
        try:
            matrix = self._numpy.asarray(self._embedder.embed(texts), dtype=self._numpy.float32)
        except ModelError:
            raise
        except Exception as error:  # an embedder is anybody's code: whatever it raises, it failed
            raise ModelError(f"The embedder {self.name!r} failed ({type(error).__name__}).") from error
        if matrix.shape != (len(texts), self.dimensions) or not self._numpy.isfinite(matrix).all():
            expected = f"{len(texts)} vectors of {self.dimensions} finite numbers"
            raise ModelError(f"The embedder {self.name!r} should have answered with {expected}, and did not.")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / self._numpy.where(lengths > 0, lengths, 1)  # type: ignore[no-any-return]
