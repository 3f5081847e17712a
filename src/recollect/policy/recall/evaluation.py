"""How good a ranking is, given what should have been found.

Recall@k is the share of what was expected that is among the first k; hit@k whether any of it is. NDCG@10 also asks how
far up it stands, and MRR is one divided by the place of the first that was expected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

DEPTHS = (5, 10)
DCG_DEPTH = 10
METRICS = ("recall@5", "recall@10", "hit@5", "hit@10", "ndcg@10", "mrr")


def metrics(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Each of `METRICS` for one question.

    >>> {name: round(value, 2) for name, value in metrics(["b", "a", "c"], ["a", "z"]).items()}
    {'recall@5': 0.5, 'recall@10': 0.5, 'hit@5': 1.0, 'hit@10': 1.0, 'ndcg@10': 0.39, 'mrr': 0.5}
    """
    wanted = set(expected)
    places = [place for place, each in enumerate(dict.fromkeys(ranked)) if each in wanted]
    within = {depth: sum(place < depth for place in places) for depth in DEPTHS}
    gain = sum(1 / log2(place + 2) for place in places if place < DCG_DEPTH)
    ideal = sum(1 / log2(place + 2) for place in range(min(DCG_DEPTH, len(wanted))))
    return {
        **{f"recall@{depth}": within[depth] / len(wanted) for depth in DEPTHS},
        **{f"hit@{depth}": float(within[depth] > 0) for depth in DEPTHS},
        f"ndcg@{DCG_DEPTH}": gain / ideal,
        "mrr": 1 / (places[0] + 1) if places else 0.0,
    }


def averages(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over the questions."""
    asked = list(each)
    return {name: sum(one[name] for one in asked) / len(asked) for name in METRICS} if asked else {}
