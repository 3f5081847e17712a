"""Scores of an evaluation: the answers to single questions, averaged by type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wellkept.evaluation.sets import LabelledQuestion
from wellkept.recall.rules_evaluation import METRICS, Estimate, estimate_mean

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
