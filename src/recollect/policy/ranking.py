"""How search results are scored.

Words and meaning are measured apart, each brought to the range 0 to 1, and added with a weight: unlike a fusion of
ranks this keeps a lone strong match ahead of two weak ones. The result, `similarity`, is then one of the four parts of
the final score.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from recollect.model import Source

BM25_K1 = 1.2
"""How soon repeating a word stops to matter."""

BM25_B = 0.75
"""How much a long text must pay for its length."""

SOURCE_PRIORITY: Mapping[Source, float] = {
    Source.MEMORY: 1.0,
    Source.AUDIT: 0.8,
    Source.WORKFLOW: 0.6,
    Source.KNOWLEDGE: 0.5,
}

RECENCY_HALF_LIFE = timedelta(days=180)
"""After this long a memory's recency has halved."""


def hybrid(words: Mapping[int, float], meaning: Mapping[int, float], *, words_share: float) -> dict[int, float]:
    """Similarity by record number, from word scores and cosines, each measured against its best.

    What one side missed counts 0 there; a side that found nothing at all leaves the judgement to the other.

    >>> hybrid({1: 8.0, 2: 4.0}, {1: 0.8, 3: 0.4}, words_share=0.5)
    {1: 1.0, 2: 0.25, 3: 0.25}
    >>> hybrid({}, {1: 0.8, 3: 0.4}, words_share=0.5)
    {1: 1.0, 3: 0.5}
    """
    best_words, best_meaning = max(words.values(), default=0.0), max(meaning.values(), default=0.0)
    if best_words <= 0 or best_meaning <= 0:
        words_share = 1.0 if best_words > 0 else 0.0
    return {
        number: words_share * words.get(number, 0.0) / (best_words or 1.0)
        + (1 - words_share) * max(0.0, meaning.get(number, 0.0)) / (best_meaning or 1.0)
        for number in dict.fromkeys([*words, *meaning])
    }


def recency(created_at: datetime, *, now: datetime) -> float:
    """1 for something just said, halving with every `RECENCY_HALF_LIFE`.

    >>> recency(datetime(2026, 1, 1), now=datetime(2026, 6, 30))
    0.5
    """
    age = (now - created_at) / RECENCY_HALF_LIFE
    return float(0.5**age) if age > 0 else 1.0


def weighted(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The final score.

    >>> weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
    >>> round(weighted({"similarity": 0.8, "recency": 0.5, "importance": 0.5, "source": 1.0}, weights), 3)
    0.7
    """
    score = 0.0
    for name, value in parts.items():
        score += weights[name] * value
    return score
