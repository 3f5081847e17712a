"""Protocols that others can implement: embedders, token counters, language models, clocks and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wellkept.model import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clock: TypeAlias = Callable[[], datetime]
"""Function that returns the time, aware and in UTC."""

Progress: TypeAlias = Callable[[int, int], None]
"""Callback that receives the number of steps done and the total."""


class Embedder(Protocol):
    """Turns texts into vectors, close together for texts of similar meaning."""

    @property
    def name(self) -> str:
        """Name that changes whenever the same text would get another vector."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector, as a row, for each text. Raises: ModelError."""


class TokenCounter(Protocol):
    """Counts tokens like a language model, or estimates them."""

    def count(self, text: str) -> int: ...


class Model(Protocol):
    """A language model that answers a conversation with text."""

    @property
    def name(self) -> str: ...

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Return the answer to `messages`, each with a role and a content.

        `timeout` covers the whole call, in seconds; None uses the settings.

        Raises: ModelError.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Model for each purpose; None where none is configured."""

    main: Model | None = None
    summary: Model | None = None
    fast: Model | None = None
