"""Made-up memories: sentences whose words are as unevenly common as in real text, with vectors to match."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from wellkept.model import Kind, Memory, Owner

DIMENSIONS = 256
WORDS_PER_TEXT = 14
VOCABULARY = 20_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)

_SYLLABLES = ("ba", "do", "ki", "lu", "me", "na", "po", "ra", "si", "to", "ve", "zu")


def vocabulary() -> list[str]:
    """Pronounceable, distinct and not shortened by the stemmer into one another."""
    rng = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 5)))] = None
    return list(words)


def sentences(count: int, *, seed: int = 2, words: int = WORDS_PER_TEXT) -> list[str]:
    """Zipf-distributed words: a few are everywhere, most are rare."""
    rng = random.Random(seed)
    weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
    chosen = rng.choices(vocabulary(), cum_weights=weights, k=count * words)
    return [" ".join(chosen[i : i + words]) for i in range(0, len(chosen), words)]


def vectors(count: int, *, seed: int = 3) -> NDArray[np.float32]:
    matrix = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    unit: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


def memories(owner: Owner, texts: list[str]) -> list[Memory]:
    return [Memory(owner=owner, kind=Kind.EPISODE, text=text, created_at=NOW) for text in texts]
