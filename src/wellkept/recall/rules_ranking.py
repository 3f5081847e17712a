"""Rank hits of all sources by a weighted sum and drop duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from wellkept.model import Source

BM25_K1 = 1.2
"""BM25 term-frequency saturation: the higher, the longer repetitions keep adding."""

BM25_B = 0.75
"""BM25 length normalisation, from 0 (none) to 1 (full)."""

SOURCE_PRIORITY: Mapping[Source, float] = {
    Source.MEMORY: 1.0,
    Source.AUDIT: 0.8,
    Source.WORKFLOW: 0.6,
    Source.KNOWLEDGE: 0.5,
}
"""Score part `source`: at equal similarity, an agent's own memories rank above shared history and documents."""


HALF_LIFE = timedelta(days=365)
"""Age at which the recency of a record counts half."""


def recency(created_at: datetime, *, now: datetime) -> float:
    """Return 1 for a new record, halving every `HALF_LIFE`.

    >>> recency(datetime(2026, 1, 1), now=datetime(2027, 1, 1))
    0.5
    """
    age = (now - created_at) / HALF_LIFE
    return float(0.5**age) if age > 0 else 1.0


def score(similarity: float, recency: float, importance: float, source: Source, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of `score_parts`, without building them.

    >>> weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
    >>> round(score(0.5, 1.0, 0.4, Source.MEMORY, weights), 3)
    0.44
    """
    lift = weights["recency"] * recency + weights["importance"] * importance
    return similarity * (weights["similarity"] + lift + weights["source"] * SOURCE_PRIORITY[source])


def score_parts(similarity: float, *, recency: float, importance: float, source: Source) -> dict[str, float]:
    """Return the parts of a score. All but the similarity count in proportion to it.

    A record gains from being new or important only as far as it is relevant; otherwise these would outweigh the small
    differences between weak matches.

    >>> score_parts(0.5, recency=1.0, importance=0.4, source=Source.MEMORY)
    {'similarity': 0.5, 'recency': 0.5, 'importance': 0.2, 'source': 0.5}
    """
    return {
        "similarity": similarity,
        "recency": similarity * recency,
        "importance": similarity * importance,
        "source": similarity * SOURCE_PRIORITY[source],
    }


def weighted_sum(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Compute the final score as a weighted sum.

    >>> weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
    >>> round(weighted_sum({"similarity": 0.8, "recency": 0.5, "importance": 0.5, "source": 1.0}, weights), 3)
    0.7
    """
    score = 0.0
    for name, value in parts.items():
        score += weights[name] * value
    return score


def order_equal_texts(texts: Sequence[tuple[str, Source]]) -> list[int]:
    """Return an order in which equal texts stand where the first of them was, the most trusted source first.

    >>> order_equal_texts([("a", Source.KNOWLEDGE), ("b", Source.MEMORY), ("a", Source.MEMORY)])
    [2, 0, 1]
    """
    first: dict[str, int] = {}
    keys = [(first.setdefault(text, place), -SOURCE_PRIORITY[source]) for place, (text, source) in enumerate(texts)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def drop_duplicates(hashes: Iterable[str], *, most: int | None = None) -> tuple[list[int], dict[int, int]]:
    """Return the positions of first occurrences, and a map from each duplicate to its first occurrence.

    `hashes` are ordered best first; the scan stops once `most` distinct hashes were seen.

    >>> drop_duplicates(["a", "b", "a", "a", "c"])
    ([0, 1, 4], {2: 0, 3: 0})
    >>> drop_duplicates(["a", "a", "b", "c"], most=2)
    ([0, 2], {1: 0})
    """
    first: dict[str, int] = {}
    duplicates = {}
    for position, each in enumerate(hashes):
        if first.setdefault(each, position) != position:
            duplicates[position] = first[each]
        elif len(first) == most:
            break
    return list(first.values()), duplicates
