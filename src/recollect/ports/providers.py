"""What turns text into something else: embedders, token counters and language models; and the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from recollect.model import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""One text's place in the space of meanings, of length 1."""

EmbedTexts: TypeAlias = "Callable[[Sequence[str]], Sequence[Vector | None]]"
"""A vector for each text; None where it has to come later."""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, aware and in UTC."""


class Embedder(Protocol):
    """Turns texts into vectors. Texts that mean the same lie close together."""

    @property
    def name(self) -> str:
        """Changes whenever the same text would get another vector."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text.

        Raises: ModelError.
        """


class TokenCounter(Protocol):
    """Counts tokens as a language model would, or estimates them."""

    def count(self, text: str) -> int: ...


class Model(Protocol):
    """A language model: it answers a conversation with text."""

    @property
    def name(self) -> str: ...

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """The text it answers `messages` (each a role and a content) with. `timeout` is for all of it, in seconds;
        None means as the settings say.

        Raises: ModelError.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The model for each purpose; None where there is none, and the caller does without."""

    main: Model | None = None
    summary: Model | None = None
    fast: Model | None = None
