"""Scores of an evaluation: metrics of ranking quality, and their means by type of question with standard errors.

Recall@k is the share of expected results among the first k; hit@k is 1 if any of them is. NDCG@10 also rewards a high
position, and MRR is the reciprocal rank of the first expected result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log2, sqrt

from wellkept.evaluation.sets import LabelledQuestion

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


ALL = "all"
"""Name of the scores over all types of questions in the headline."""

UNANSWERABLE = "unanswerable"
"""Name of the scores over all questions that should find nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Measurements of one question."""

    conversation: str
    question: LabelledQuestion
    turns: Mapping[str, float]  # metrics by single memory; empty if none is expected
    sessions: Mapping[str, float]  # metrics by session; empty if none is expected
    alive: float | None  # share of the expected memories that are still alive when it is asked
    hits: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Averages over the questions of one type."""

    type: str
    is_headline: bool
    questions: int
    turns: Mapping[str, Estimate]  # of the questions with expected memories
    sessions: Mapping[str, Estimate]
    alive: Estimate | None
    no_hit: Estimate | None  # share of the questions without an answer that find nothing


def score_answers(answers: Sequence[Answer]) -> list[Scores]:
    """Average the answers: over the headline, over the questions without an answer, and by type."""
    headline = [each for each in answers if each.question.is_headline and each.question.is_answerable]
    silent = [each for each in answers if not each.question.is_answerable]
    by_type: dict[str, list[Answer]] = {}
    for answer in answers:
        by_type.setdefault(answer.question.type, []).append(answer)
    # A single type would only repeat the scores over all.
    named = {name: by_type[name] for name in sorted(by_type) if name and by_type[name] != headline}
    groups = {ALL: headline, **({UNANSWERABLE: silent} if UNANSWERABLE not in named else {}), **named}
    return [_average(name, group) for name, group in groups.items() if group]


def _average(name: str, answers: Sequence[Answer]) -> Scores:
    return Scores(
        type=name,
        is_headline=any(each.question.is_headline and each.question.is_answerable for each in answers),
        questions=len(answers),
        turns=_average_metrics(answers, lambda answer: answer.turns),
        sessions=_average_metrics(answers, lambda answer: answer.sessions),
        alive=_estimate((each, each.alive) for each in answers),
        no_hit=_estimate((each, float(each.hits == 0)) for each in answers if not each.question.is_answerable),
    )


def _average_metrics(answers: Sequence[Answer], read: Callable[[Answer], Mapping[str, float]]) -> dict[str, Estimate]:
    found = {name: _estimate((each, read(each).get(name)) for each in answers) for name in METRICS}
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def _estimate(values: Iterable[tuple[Answer, float | None]]) -> Estimate | None:
    return estimate_mean((answer.conversation, value) for answer, value in values if value is not None)
