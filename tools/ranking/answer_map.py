"""Fit the linear map that moves the vector of a question to where the vectors of its answers are.

The encoder puts a question near texts with the same subject. What else a question says, that its answer is a time, a
name, a habit, is a direction that the encoder has and plain cosine does not use. The map is applied to questions alone,
so that no memory is embedded anew when it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import records
from numpy.typing import NDArray
from records import embed, fold_of
from scipy.optimize import minimize

from wellkept.language.text import index_terms, terms
from wellkept.providers.minilm import ANSWER_MAP_FILE
from wellkept.recall.rules_features import rarity

PAIRS = Path(__file__).with_name("pairs.txt")
OUTPUT = Path(records.__file__).parents[2] / "src/wellkept/providers" / ANSWER_MAP_FILE

SCALE = 17
"""Weight of the cosine beside `COVER`, as facts are ranked."""

COVER = 3.2
RIDGE = 0.05
STEPS = 30
OTHERS = 300
"""Other facts beside the pairs, so that some are near to every question."""

Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Group:
    """Questions, the memories of their conversation, and which answer them."""

    fold: int | None  # None: fitted whatever conversations are left out
    questions: Floats
    memories: Floats
    by_words: Floats
    is_answer: NDArray[np.bool_]
    weight: Floats  # of each question


def fit_maps(conversations: Sequence[records.Conversation], pairs: Sequence[Path]) -> dict[int | None, NDArray]:
    """Return the map by the fold of conversations that was left out; None: of all."""
    questions = [each.query for conversation in conversations for each in conversation.questions]
    typical = np.mean(embed(sorted({*questions, *(question for question, _ in read_own_pairs())})), 0).astype(float)
    groups = [*_build_groups(conversations, pairs, typical)]
    maps = {}
    for left_out in (None, *range(records.FOLDS)):
        kept = [each for each in groups if each.fold is None or each.fold != left_out]
        moved = _fit(kept)
        maps[left_out] = np.vstack([moved, -typical @ moved]).astype("<f2")
    return maps


def write_map(fitted: NDArray[np.floating]) -> None:
    OUTPUT.write_bytes(fitted.astype("<f2").tobytes())


def read_own_pairs() -> Iterator[tuple[str, str]]:
    """Yield each question of `pairs.txt` and the fact that answers it."""
    for line in PAIRS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            fact, *questions = line.split(" | ")
            yield from ((question, fact) for question in questions)


def _build_groups(
    conversations: Sequence[records.Conversation], pairs: Sequence[Path], typical: Floats
) -> Iterator[Group]:
    """Every family counts the same, each of its questions too."""
    families = [each.family for each in conversations for _ in each.questions]
    for each in conversations:
        if each.questions:
            ids = {str(memory["id"]): place for place, memory in enumerate(each.memories)}
            texts = [str(memory["text"]).strip()[: records.MAX_CHARS] for memory in each.memories]
            answers = [[ids[turn] for turn in question.turns] for question in each.questions]
            weight = 200 / max(100, families.count(each.family))
            yield _build_group(fold_of(each.id), [question.query for question in each.questions], texts, answers,
                               weight, typical)  # fmt: skip
    facts = [str(memory["text"]) for each in conversations if each.family == "facts" for memory in each.memories]
    facts = facts[:: max(1, len(facts) // OTHERS)]
    for path in (None, *pairs):
        asked = [*read_own_pairs()] if path is None else [(each["question"], each["fact"]) for each in
                                                          records.read_pairs(path)]  # fmt: skip
        own = [*dict.fromkeys(fact for _, fact in asked)]
        answers = [[own.index(fact)] for _, fact in asked]
        fold = None if path is None else fold_of(path.stem)
        yield _build_group(fold, [question for question, _ in asked], [*own, *facts], answers, 1.0, typical)


def _build_group(
    fold: int | None,
    questions: Sequence[str],
    texts: Sequence[str],
    answers: Sequence[Collection[int]],
    weight: float,
    typical: Floats,
) -> Group:
    is_answer = np.zeros((len(questions), len(texts)), np.bool_)
    for row, of in zip(is_answer, answers, strict=True):
        row[list(of)] = True
    vectors = np.array(embed(questions)) - typical.astype(np.float32)
    by_words = COVER * _find_cover(questions, texts)
    weights = np.full(len(questions), weight, np.float32)
    return Group(fold, vectors, np.array(embed(texts)), by_words, is_answer, weights)


def _find_cover(questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """Return the share of each question's words, by rarity, that each text holds."""
    holders: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        for term in set(index_terms(text)):
            holders.setdefault(term, []).append(place)
    cover = np.zeros((len(questions), len(texts)), np.float32)
    for row, question in zip(cover, questions, strict=True):
        weights = {term: rarity(len(texts), len(holders.get(term, ()))) for term in terms(question)}
        for term, weight in weights.items():
            row[holders.get(term, [])] += weight / sum(weights.values())
    return cover


def _fit(groups: Sequence[Group]) -> Floats:
    """Maximise the chance that an answer is drawn before all other memories of its conversation."""
    size, total = groups[0].questions.shape[1], sum(each.weight.sum() for each in groups)

    def loss(flat: Floats) -> tuple[float, Floats]:
        change = flat.reshape(size, size).astype(np.float32)
        value, slope = 0.0, np.zeros_like(change)
        for each in groups:
            scores = SCALE * ((each.questions + each.questions @ change) @ each.memories.T) + each.by_words
            powers = np.exp(scores - scores.max(1, keepdims=True))
            others = (powers * ~each.is_answer).sum(1, keepdims=True)
            share = each.weight[:, None] / each.is_answer.sum(1, keepdims=True) * each.is_answer
            chance = powers / (powers + others)
            value -= (share * np.log(chance + 1e-30)).sum()
            pull = (share / (powers + others)).sum(1, keepdims=True) * powers * ~each.is_answer - share * (1 - chance)
            slope += SCALE * each.questions.T @ (pull @ each.memories)
        return value / total + RIDGE / 2 * flat @ flat, (slope / total).ravel() + RIDGE * flat

    found = minimize(loss, np.zeros(size * size), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.eye(size) + found.x.reshape(size, size)
