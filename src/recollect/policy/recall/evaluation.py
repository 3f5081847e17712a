"""Metrics of ranking quality against expected results.

Recall@k is the share of expected results among the first k; hit@k is 1 if any of them is. NDCG@10 also rewards a high
position, and MRR is the reciprocal rank of the first expected result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

DEPTHS = (5, 10)
DCG_DEPTH = 10
METRICS = ("recall@5", "recall@10", "hit@5", "hit@10", "ndcg@10", "mrr")


def compute_metrics(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Compute each of `METRICS` for one question.

    >>> {name: round(value, 2) for name, value in compute_metrics(["b", "a", "c"], ["a", "z"]).items()}
    {'recall@5': 0.5, 'recall@10': 0.5, 'hit@5': 1.0, 'hit@10': 1.0, 'ndcg@10': 0.39, 'mrr': 0.5}
    """
    relevant = set(expected)
    ranks = [rank for rank, each in enumerate(dict.fromkeys(ranked)) if each in relevant]
    within = {depth: sum(rank < depth for rank in ranks) for depth in DEPTHS}
    gain = sum(1 / log2(rank + 2) for rank in ranks if rank < DCG_DEPTH)
    ideal = sum(1 / log2(rank + 2) for rank in range(min(DCG_DEPTH, len(relevant))))
    return {
        **{f"recall@{depth}": within[depth] / len(relevant) for depth in DEPTHS},
        **{f"hit@{depth}": float(within[depth] > 0) for depth in DEPTHS},
        f"ndcg@{DCG_DEPTH}": gain / ideal,
        "mrr": 1 / (ranks[0] + 1) if ranks else 0.0,
    }


def average_metrics(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Average every metric over the questions."""
    results = list(each)
    return {name: sum(one[name] for one in results) / len(results) for name in METRICS} if results else {}
