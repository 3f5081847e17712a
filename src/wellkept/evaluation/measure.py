"""Evaluation of recall on labelled sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wellkept.errors import Invalid
from wellkept.evaluation.replay import Replay, ReplayOptions, Rest
from wellkept.evaluation.scores import Answer, Scores, score_answers
from wellkept.evaluation.sets import LabelledSet
from wellkept.settings import Settings

DEFAULTS = ReplayOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Result of an evaluation."""

    scores: Sequence[Scores]
    stored: int
    store_seconds: float
    recall_seconds: Sequence[float]  # of each question
    rest: Rest

    @property
    def recall_p50_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.5)

    @property
    def recall_p95_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.95)


def evaluate(
    sets: Iterable[LabelledSet],
    settings: Settings,
    *,
    options: ReplayOptions = DEFAULTS,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Store each set, ask its questions and score the answers.

    `progress` is called with the number of memories stored since the last call.

    Raises: Invalid, ModelError.
    """
    answers: list[Answer] = []
    rest = Rest()
    stored, store_seconds = 0, 0.0
    for one in sets:
        if not one.select_questions(options.split):
            continue
        with Replay(one, settings, options) as replay:
            replay.store_memories(progress or (lambda count: None))
            answers += replay.ask_questions()
            rest += replay.count_rest()
            stored, store_seconds = stored + len(one.memories), store_seconds + replay.store_seconds
    if not answers:
        which = f" of the split {options.split!r}" if options.split else ""
        raise Invalid(f"There is no question{which} to ask.")
    return Evaluation(
        scores=score_answers(answers),
        stored=stored,
        store_seconds=store_seconds,
        recall_seconds=[answer.seconds for answer in answers],
        rest=rest,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
