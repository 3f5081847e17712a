"""Rank hits of all sources by a weighted sum and drop duplicates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from recollect.model import Source
from recollect.policy.text import terms

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


LOOKED_AT = 3
"""How many of a source's first candidates are read to tell how strong it is."""

FULL_COSINE = 0.6
"""Texts this close mean the same as far as anybody can tell; the usual embedders seldom put a paraphrase nearer."""


def coverage(question: Collection[str], text: str) -> float:
    """The share of the question's words (as `text.terms` cuts them) that a text holds.

    >>> coverage(["refund", "polici"], "Our refund policies"), coverage(["refund", "polici"], "A refund")
    (1.0, 0.5)
    """
    wanted = set(question)
    return len(wanted.intersection(terms(text))) / len(wanted) if wanted else 0.0


def strength(question: str, best_texts: Iterable[str], cosines: Iterable[float]) -> float:
    """How well the best of a source's candidates answer a question, by words or by meaning, 0 to 1."""
    wanted = terms(question)
    by_words = max((coverage(wanted, text) for text in best_texts), default=0.0)
    by_meaning = max((cosine / FULL_COSINE for cosine in cosines), default=0.0)
    return min(1.0, max(by_words, by_meaning, 0.0))


def scales(strengths: Mapping[str, float]) -> dict[str, float]:
    """What each source's similarities are multiplied with.

    >>> scales({"memory": 0.8, "audit": 0.2})
    {'memory': 1.0, 'audit': 0.25}
    >>> scales({"memory": 0.0})
    {'memory': 1.0}
    """
    strongest = max(strengths.values(), default=0.0)
    return {name: each / strongest if strongest > 0 else 1.0 for name, each in strengths.items()}


def without_doubles(hashes: Iterable[str], *, most: int | None = None) -> tuple[list[int], dict[int, int]]:
    """The positions of what is said first, and for the position of each double that of what it doubles.

    `hashes` are in order, the best first; once `most` are found, the rest is not looked at.

    >>> without_doubles(["a", "b", "a", "a", "c"])
    ([0, 1, 4], {2: 0, 3: 0})
    >>> without_doubles(["a", "a", "b", "c"], most=2)
    ([0, 2], {1: 0})
    """
    first: dict[str, int] = {}
    doubles = {}
    for position, each in enumerate(hashes):
        if first.setdefault(each, position) != position:
            doubles[position] = first[each]
        elif len(first) == most:
            break
    return list(first.values()), doubles
