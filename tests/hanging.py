"""An embedder that can be made to hang."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from tests.waiting import LIMIT


class Hanging:
    """Answers only while it may, and counts how often it was asked."""

    name = "hanging"
    dimensions = 8

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = 0

    @classmethod
    @contextmanager
    def released(cls) -> Iterator[Self]:
        """One that nobody waits for any longer when the block ends."""
        embedder = cls()
        try:
            yield embedder
        finally:
            embedder.may_answer.set()

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += 1
        assert self.may_answer.wait(LIMIT)
        return np.eye(8, dtype=np.float32)[[len(text) % 8 for text in texts]]
