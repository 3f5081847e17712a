"""Fit the chance that a hit is relevant, by bounded logistic regressions, and choose the floors."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from records import ANSWERABLE, Asked
from scipy.optimize import minimize

from wellkept.policy.recall import matching
from wellkept.policy.recall.calibration import HIT_SHARE, MEANING, BestMatch, Relevance, describe_words
from wellkept.policy.recall.matching import NO_MATCH

HITS = 10
RIDGE = 3e-4
COST, SILENT = 0.01, 0.9
"""Share of R@10 that a floor may cost, and of the questions about something else that it should silence."""

MORE = frozenset(
    "score above_mean own cover best_cover held_rarity around_rarity is_full full_of_few full_rarity names_near "
    "meaning wordless_meaning near_meaning talk_meaning best_meaning cover_of_terms odds".split()
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
    asked: Sequence[Asked], weigh: Callable[[Asked], Mapping[str, float]], *, by_words: bool
) -> list[Rated]:
    """Rank every question; `by_words` ranks as if no memory had a vector."""
    found = []
    for each in asked:
        features, evidence = each.features, each.evidence
        if by_words:
            features = {name: column for name, column in features.items() if name not in MEANING}
            evidence = replace(evidence, cosines=None)
        scores = matching.weigh_features(evidence, features, weigh(each))
        top = np.argsort(-scores, kind="stable")[:HITS]
        top = top[scores[top] > NO_MATCH]
        if len(top):
            match = matching.describe_match(evidence, each.question, features, scores, int(top[0]))
            found.append(
                Rated(
                    asked=each,
                    family=each.family,
                    kind=each.kind,
                    answers=int(each.relevant.sum()),
                    match=match,
                    below=scores[top[0]] - scores[top],
                    relevant=each.relevant[top],
                    known=describe_words(float(features["cover"][top[0]]), each.question.count_content()),
                )
            )
    return found


def fit_relevance(rated: Sequence[Rated]) -> Relevance:
    """Fit the chance of an answer, then the share of each hit in the questions that have one."""
    names = list(rated[0].match.values)
    rows = np.array([np.concatenate([parts for _, parts in each.match.expand()]) for each in rated])
    is_found, weight = np.array([each.relevant.any() for each in rated]), weigh_groups(rated)
    weights = fit_logistic(rows, is_found, weight, [name for name in names for _ in range(3)]).reshape(-1, 3)
    answered = {name: tuple(row) for name, row in zip(names, weights.round(4).tolist(), strict=True)}
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


def report_floors(label: str, rated: Sequence[tuple[Rated, Relevance]], floors: Sequence[float]) -> None:
    """Print, for each family and floor, the points of R@10 it costs and the share of each kind that it silences."""
    chances = defaultdict[tuple[str, str], list[tuple[Rated, Floats]]](list)
    for each, fitted in rated:
        if " " not in each.family:
            chances[each.family, each.kind].append((each, fitted.rate(each.match, each.below)))
    for family in sorted({family for family, _ in chances}):
        asked = chances[family, ANSWERABLE]
        predicted, true = np.mean([rate[0] for _, rate in asked]), np.mean([each.relevant[0] for each, _ in asked])
        line = [f"{label:8} {family:12} {len(asked):4} first hit {predicted:.2f} rated {true:.2f} relevant"]
        for floor in floors:
            cost = np.mean([each.recall - _keep(each, rate, floor) for each, rate in asked])
            silent = {
                kind: np.mean([rate[0] < floor for _, rate in some])
                for (of, kind), some in chances.items()
                if of == family and kind not in (ANSWERABLE, "broad")
            }
            shares = " ".join(f"{kind} {100 * each:.0f}" for kind, each in silent.items())
            line.append(f"\n{'':9}floor {floor:.3f} costs {100 * cost:4.1f}; silent: {shares}")
        print("".join(line), flush=True)


def choose_floors(rated: Sequence[tuple[Rated, Relevance]]) -> tuple[float, float]:
    """Return two floors, in steps of 0.005, by averages over the families.

    The first is the highest that costs at most `COST` of R@10, the second the lowest that silences `SILENT` of the
    questions about something else.
    """
    groups = defaultdict[tuple[str, bool], list[tuple[Rated, Floats]]](list)
    for each, fitted in rated:
        if each.kind in (ANSWERABLE, "foreign", "general") and " " not in each.family:
            groups[each.family, each.kind == ANSWERABLE].append((each, fitted.rate(each.match, each.below)))
    cheap, silencing = 0.0, 1.0
    for floor in np.arange(0.005, 0.5, 0.005).round(3).tolist():
        costs, silent = list[float](), list[float]()
        for (_, is_answerable), some in groups.items():
            if is_answerable:
                costs.append(float(np.mean([each.recall - _keep(each, rate, floor) for each, rate in some])))
            else:
                silent.append(float(np.mean([rate[0] < floor for _, rate in some])))
        cheap = floor if np.mean(costs) <= COST else cheap
        silencing = min(silencing, floor) if np.mean(silent) >= SILENT else silencing
    return cheap, silencing


def write_weights(path: Path, result: Mapping[str, object]) -> None:
    """Write the weights as JSON, each list on one line."""
    text = re.sub(r"\[[^\[\]]+\]", lambda found: " ".join(found[0].split()), json.dumps(result, indent=2))
    path.write_text(f"{text}\n", "utf-8")


def _keep(rated: Rated, rates: Floats, floor: float) -> float:
    kept = rates >= floor * HIT_SHARE if rates[0] >= floor else np.zeros(len(rates), bool)
    return float((rated.relevant & kept).sum() / max(1, rated.answers))
