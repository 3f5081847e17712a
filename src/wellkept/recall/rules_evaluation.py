"""Metrics of ranking quality against expected results, and their means with standard errors.

Recall@k is the share of expected results among the first k; hit@k is 1 if any of them is. NDCG@10 also rewards a high
position, and MRR is the reciprocal rank of the first expected result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log2, sqrt

DCG_DEPTH = 10
METRICS = ("recall@5", "recall@10", "hit@5", "ndcg@10", "mrr")


class Usage(StrEnum):
    """Ways to store memories."""

    TURNS = "turns"  # chat turns with role and session, as `log_turn(…, remember=True)` stores them
    NOTES = "notes"  # as `remember(text)`, with nothing but the text


def compute_metrics(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Compute each of `METRICS` for one question.

    >>> {name: round(value, 2) for name, value in compute_metrics(["b", "a", "c"], ["a", "z"]).items()}
    {'recall@5': 0.5, 'recall@10': 0.5, 'hit@5': 1.0, 'ndcg@10': 0.39, 'mrr': 0.5}
    """
    relevant = set(expected)
    ranks = [rank for rank, each in enumerate(dict.fromkeys(ranked)) if each in relevant]
    first_five, first_ten = (sum(rank < depth for rank in ranks) for depth in (5, 10))
    gain = sum(1 / log2(rank + 2) for rank in ranks if rank < DCG_DEPTH)
    ideal = sum(1 / log2(rank + 2) for rank in range(min(DCG_DEPTH, len(relevant))))
    return {
        "recall@5": first_five / len(relevant),
        "recall@10": first_ten / len(relevant),
        "hit@5": float(first_five > 0),
        "ndcg@10": gain / ideal,
        "mrr": 1 / (ranks[0] + 1) if ranks else 0.0,
    }


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of a metric and its standard error; None if one question leaves nothing to estimate it from."""

    mean: float
    error: float | None
    count: int  # of questions

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.error is None else f"{self.mean:.3f} ±{self.error:.3f}"


def estimate_mean(values: Iterable[tuple[str, float]]) -> Estimate | None:
    """Estimate a mean from values and the conversation each belongs to; None without values.

    Questions about one conversation are not independent, so the error is that of a cluster sample:
    sqrt(G / (G - 1) * sum over conversations of (sum of deviations)²) / n, with G conversations. A few conversations
    may agree by chance, so it is never below that of independent questions, which is the same formula with G = n.

    >>> print(estimate_mean([("a", 1.0), ("b", 0.0), ("c", 1.0), ("d", 0.0)]))
    0.500 ±0.289
    >>> print(estimate_mean([("a", 1.0), ("a", 1.0), ("b", 0.0), ("b", 0.0)]))
    0.500 ±0.500
    """
    pairs = list(values)
    if not pairs:
        return None
    mean = sum(value for _, value in pairs) / len(pairs)
    deviations: defaultdict[str, float] = defaultdict(float)
    for cluster, value in pairs:
        deviations[cluster] += value - mean
    errors = (_estimate_error(each, len(pairs)) for each in (list(deviations.values()), [v - mean for _, v in pairs]))
    return Estimate(mean, max((each for each in errors if each is not None), default=None), len(pairs))


def _estimate_error(deviations: Sequence[float], count: int) -> float | None:
    groups = len(deviations)
    if groups == 1:
        return None
    return sqrt(groups / (groups - 1) * sum(each**2 for each in deviations)) / count
