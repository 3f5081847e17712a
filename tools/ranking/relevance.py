"""Fit the chance that a hit is relevant, by bounded logistic regressions."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from records import MEANING, Asked
from scipy.optimize import minimize

from wellkept.recall import rules_matching as matching
from wellkept.recall.rules_features import Evidence
from wellkept.recall.rules_matching import NO_MATCH, BestMatch, FamilyWeights, Relevance, describe_words

HITS = 10
NO_RELEVANCE = Relevance({}, {})
RIDGE = 3e-4
LEAST_WEIGHT = 0.02
"""Share of the largest effect on the chance below which a property is left out."""

MORE = frozenset(
    "score above_mean own cover best_cover held_rarity around_rarity full_rarity names_near "
    "wordless_meaning near_meaning talk_meaning best_meaning cosine cover_of_terms odds".split()
)
"""Properties that never count against a match."""

LESS = frozenset("unknown_rarity missing missing_near unknown_words unknown_names no_word is_bare".split())
"""Properties that never count for it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A question and its first hits in order: how far each ranks below the best, and which are relevant."""

    asked: Asked | None  # None: it was not asked in a conversation
    family: str
    kind: str
    answers: int  # number of records that are relevant, found or not
    match: BestMatch
    below: NDArray[np.float32]
    relevant: NDArray[np.bool_]
    known: Mapping[str, float]  # what a search in the audit log would know of the best hit

    @property
    def group(self) -> tuple[str, bool, str]:
        """Family, whether there is an answer, and the kind; each has the same weight within the next larger one."""
        family, _, form = self.family.partition(" ")
        return family, self.answers > 0, form or self.kind

    @property
    def recall(self) -> float:
        return float(self.relevant.sum() / max(1, self.answers))


def rate_questions(
    asked: Sequence[Asked], ranking: Mapping[str, tuple[float, float]], *, is_turn: bool, by_words: bool
) -> list[Rated]:
    """Rank the facts or the turns of every question; `by_words` ranks as if no memory had a vector."""
    found = []
    for each in asked:
        features, evidence = each.features, each.evidence
        if by_words:
            features = {name: column for name, column in features.items() if name not in MEANING}
            evidence = replace(evidence, cosines=None)
        scores = rank(each, ranking, features=features, evidence=evidence)
        scores = np.where(evidence.turns == is_turn, scores, NO_MATCH)
        top = np.argsort(-scores, kind="stable")[:HITS]
        top = top[scores[top] > NO_MATCH]
        if len(top):
            found.append(
                Rated(
                    asked=each,
                    family=each.family,
                    kind=each.kind,
                    answers=int((each.relevant & (evidence.turns == is_turn)).sum()),
                    match=matching.describe_match(evidence, each.question, features, scores, int(top[0])),
                    below=scores[top[0]] - scores[top],
                    relevant=each.relevant[top],
                    known=describe_words(float(features["cover"][top[0]]), each.question.count_content()),
                )
            )
    return found


def rank(
    asked: Asked,
    ranking: Mapping[str, tuple[float, float]],
    *,
    features: Mapping[str, NDArray[np.float32]] | None = None,
    evidence: Evidence | None = None,
) -> NDArray[np.float32]:
    features = asked.features if features is None else features
    weights = FamilyWeights(ranking, NO_RELEVANCE, NO_RELEVANCE)
    return matching.score_records(asked.evidence if evidence is None else evidence, features, weights)


def fit_relevance(rated: Sequence[Rated]) -> Relevance:
    """Fit the chance of an answer, then the share of each hit in the questions that have one."""
    names = list(rated[0].match.values)
    is_found, weight = np.array([each.relevant.any() for each in rated]), weigh_groups(rated)
    for _ in range(2):
        rows = np.array(
            [np.concatenate([each.match.expand(each.match.values[name]) for name in names]) for each in rated]
        )
        weights = fit_logistic(rows, is_found, weight, [name for name in names for _ in range(3)])
        # What hardly counts is left out, and the rest fitted again.
        effects = np.abs(weights * rows.std(0)).reshape(-1, 3).max(1)
        least = LEAST_WEIGHT * effects.max()
        keeps = [name == "constant" or each > least for name, each in zip(names, effects, strict=True)]
        kept = dict(zip(names, weights.reshape(-1, 3).round(4).tolist(), strict=True))
        names = [name for name, is_kept in zip(names, keeps, strict=True) if is_kept]
    answered = {name: tuple(row) for name, row in kept.items()}
    fitted = Relevance(answered, {})
    asked = [(each, one) for each, one in zip(rated, weight, strict=True) if each.relevant.any()]
    chances = np.concatenate([np.full(len(each.below), fitted.find_chance(each.match)) for each, _ in asked])
    below = np.concatenate([each.below for each, _ in asked]).astype(float)
    columns = np.stack([np.log(chances / (1 - chances)), -below, -np.sqrt(below), np.ones(len(below))], 1)
    share = fit_logistic(
        columns,
        np.concatenate([each.relevant for each, _ in asked]),
        np.concatenate([np.full(len(each.below), one) for each, one in asked]),
        ["odds", "odds", "odds", "constant"],
    )
    return Relevance(
        answered, dict(zip(("odds", "below", "root_below", "constant"), share.round(4).tolist(), strict=True))
    )


def fit_history(rated: Sequence[Rated]) -> dict[str, float]:
    """Fit the relevance of the best record from what the audit log knows: its cover and the question's length."""
    names = list(rated[0].known)
    rows = np.array([list(each.known.values()) for each in rated])
    is_right = np.array([each.relevant[0] for each in rated])
    return dict(zip(names, fit_logistic(rows, is_right, weigh_groups(rated), names).round(4).tolist(), strict=True))


def weigh_groups(rated: Sequence[Rated]) -> Floats:
    """Return a weight for each question: families count the same, and in each the answerable half and the other."""
    groups = [each.group for each in rated]
    kinds = defaultdict[tuple[str, bool], set[str]](set)
    for family, is_answered, kind in groups:
        kinds[family, is_answered].add(kind)
    count = defaultdict[object, int](int)
    for group in groups:
        count[group] += 1
    return np.array([1 / count[each] / len(kinds[each[:2]]) for each in groups])


def fit_logistic(rows: Floats, labels: NDArray[np.bool_], share: Floats, names: Sequence[str]) -> Floats:
    """Return the weights of a logistic regression, bounded by the sign that each name allows."""
    scale = rows.std(0)
    scale[scale == 0] = 1
    rows, sign, share = rows / scale, np.where(labels, 1, -1), share / share.sum()
    penalty = np.array([0.0 if name == "constant" else RIDGE for name in names])

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = rows @ weights * sign
        value = (share * np.logaddexp(0, -odds)).sum() + penalty @ weights**2 / 2
        return value, rows.T @ (-share * sign / (1 + np.exp(np.minimum(odds, 50)))) + penalty * weights

    bounds = [(0.0 if name in MORE else None, 0.0 if name in LESS else None) for name in names]
    options = {"maxiter": 1000, "maxfun": 5000}
    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    fitted: Floats = found.x / scale
    return fitted


def write_weights(path: Path, result: Mapping[str, object]) -> None:
    """Write the weights as JSON, each list on one line."""
    text = re.sub(r"\[[^\[\]]+\]", lambda found: " ".join(found[0].split()), json.dumps(result, indent=2))
    path.write_text(f"{text}\n", "utf-8")
