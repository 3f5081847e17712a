"""Fit the weights of recall on labelled conversations and write them to `weights.json`. Needs scipy."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from records import Asked, read_families, read_relevance
from scipy.optimize import minimize

from recollect.policy.recall import calibration
from recollect.policy.recall.calibration import MEANING, WORDS, MatchFeatures

OUTPUT = Path(calibration.__file__).with_name(calibration.WEIGHTS_FILE)
BY_LENGTH = [*sorted(WORDS), *sorted(MEANING), "length"]
"""Features whose weight may differ between short and long records."""

OTHERS = (
    "other_speaker named other_name other_day other_time asks asking echo self time asked_time number asked_number"
).split()
RIDGE = 3e-3
FAMILY_SHARE = {"keywords": 0.3}
"""Weight of families that count less than the others in the fit of the relevance."""

FOLDS = 4
HITS = 10

Floats = NDArray[np.float64]


class Design(NamedTuple):
    """One question as numbers: a row for each memory, and which rows are relevant."""

    asked: Asked
    rows: NDArray[np.float32]
    relevant: NDArray[np.bool_]


def build_design(asked: Asked) -> Design:
    none = np.zeros(len(asked.relevant), np.float32)
    columns = np.stack([asked.features.get(name, none) for name in (*BY_LENGTH, *OTHERS)], 1)
    return Design(asked, _split_by_length(columns, asked.short), asked.relevant)


def _split_by_length(columns: NDArray[np.float32], short: float) -> NDArray[np.float32]:
    """Return the columns of `BY_LENGTH` twice, for long and for short records, then the others."""
    first = columns[..., : len(BY_LENGTH)]
    both = (first * np.float32(1 - short), first * np.float32(short), columns[..., len(BY_LENGTH) :])
    return np.concatenate(both, -1)


def add_echo(design: Design) -> Design:
    """Add the question itself as a memory, which is no answer to it."""
    asked = design.asked
    known = {"own": 1, "near": 1, "cover": 1, "near_cover": 1, "meaning": 1, "talk_meaning": 1, "asks": 1, "echo": 1}
    known |= {"asking": 1, "length": np.log1p(len(asked.question.weights) + 2)}
    row = np.array([known.get(name, 0) for name in (*BY_LENGTH, *OTHERS)], np.float32)
    return Design(
        asked, np.vstack([design.rows, _split_by_length(row, asked.short)]), np.append(design.relevant, False)
    )


def fit_ranking(designs: Sequence[Design]) -> Floats:
    """Maximise the chance that a relevant memory is drawn before all others, every family counting the same."""
    designs = [add_echo(each) for each in designs if each.relevant.any()]
    families = [each.asked.family for each in designs]
    shares = np.array([1 / families.count(family) / len(set(families)) for family in families])
    rows = np.concatenate([each.rows for each in designs])
    scale = rows.std(0) + 1e-6
    rows /= scale
    relevant = np.concatenate([each.relevant for each in designs])
    starts = np.cumsum([0, *(len(each.rows) for each in designs)])
    question = np.repeat(np.arange(len(designs)), np.diff(starts))
    starts, hits = starts[:-1], np.flatnonzero(relevant)
    share = (shares / np.add.reduceat(relevant.astype(int), starts))[question[hits]]

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = (rows @ weights.astype(np.float32)).astype(np.float64)
        powers = np.exp(scores - np.maximum.reduceat(scores, starts)[question])
        others = np.add.reduceat(powers * ~relevant, starts)
        total = powers[hits] + others[question[hits]]
        value = -(share * np.log(powers[hits] / total + 1e-30)).sum() + RIDGE / 2 * weights @ weights
        slope = np.where(relevant, 0, powers * np.bincount(question[hits], share / total, len(designs))[question])
        slope[hits] = -share * (1 - powers[hits] / total)
        return value, (rows.T @ slope.astype(np.float32)).astype(np.float64) + RIDGE * weights

    # More of the question's words or meaning never counts against a memory.
    least = [0.0 if name in WORDS | MEANING else None for name in (*BY_LENGTH, *BY_LENGTH, *OTHERS)]
    found = minimize(
        loss,
        np.zeros(rows.shape[1]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(each, None) for each in least],
        options={"maxiter": 100},
    )
    fitted: Floats = found.x / scale
    return fitted


def name_weights(weights: Floats) -> dict[str, list[float]]:
    """Return the weight of each feature for long and for short records."""
    long, short, others = np.split(np.round(weights, 3), [len(BY_LENGTH), 2 * len(BY_LENGTH)])
    return {
        **{name: [float(a), float(b)] for name, a, b in zip(BY_LENGTH, long, short, strict=True)},
        **{name: [float(each)] * 2 for name, each in zip(OTHERS, others, strict=True)},
    }


class Labelled(NamedTuple):
    """Best match of each question, and the first hits: their question, how far they rank below it, their label."""

    matches: Sequence[MatchFeatures]
    is_answered: NDArray[np.bool_]
    question_share: Floats
    question: NDArray[np.int64]
    below: Floats
    relevant: NDArray[np.bool_]

    @property
    def hit_share(self) -> Floats:
        return self.question_share[self.question]


def label_hits(designs: Sequence[Design], weights: Floats) -> Labelled:
    """Rank every question and label its first hits; questions with and without an answer count the same."""
    matches, question, below, relevant = [], list[int](), list[float](), list[bool]()
    kinds = [(each.asked.family, bool(each.relevant.any())) for each in designs]
    groups = {answered: len({kind for kind in kinds if kind[1] == answered}) for answered in (True, False)}
    for number, design in enumerate(designs):
        scores = design.rows @ weights.astype(np.float32)
        top = np.argsort(-scores)[:HITS]
        matches.append(design.asked.describe(scores))
        question += [number] * len(top)
        below += (scores[top] - scores[top[0]]).tolist()
        relevant += design.relevant[top].tolist()
    return Labelled(
        matches=matches,
        is_answered=np.array([answered for _, answered in kinds]),
        question_share=np.array([FAMILY_SHARE.get(kind[0], 1) / kinds.count(kind) / groups[kind[1]] for kind in kinds]),
        question=np.array(question),
        below=np.array(below),
        relevant=np.array(relevant),
    )


def fit_relevance(labelled: Labelled, *, without: Sequence[str] = ()) -> tuple[dict[str, float], float]:
    """Fit the log odds that a hit is relevant: first those that a question has an answer, then those of its hits.

    The first fit decides how the properties of the best match count, the second how much all of them together do.
    `without` names fields of a match that the source does not know.
    """
    matches = [replace(each, **dict.fromkeys(without)) for each in labelled.matches]
    names = list(matches[0].values())
    rows = np.array([[each.values()[name] for name in names] for each in matches])
    weights = fit_logistic(rows, labelled.is_answered, labelled.question_share)
    odds = (rows @ weights)[labelled.question]
    columns = np.stack([odds, labelled.below, np.ones(len(odds))], 1)
    scale, spread, constant = fit_logistic(columns, labelled.relevant, labelled.hit_share)
    fitted = dict(zip(names, (scale * weights).tolist(), strict=True))
    return {**fitted, "constant": fitted["constant"] + constant}, float(spread)


def fit_logistic(rows: Floats, labels: NDArray[np.bool_], share: Floats) -> Floats:
    """Return the weights of a logistic regression; the last column may be constant."""
    scale = rows.std(0)
    scale[scale == 0] = 1
    rows, sign, share = rows / scale, np.where(labels, 1, -1), share / share.sum()

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = rows @ weights * sign
        value = (share * np.logaddexp(0, -odds)).sum() + 5e-4 * weights @ weights
        return value, rows.T @ (-share * sign / (1 + np.exp(odds))) + 1e-3 * weights

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    fitted: Floats = found.x / scale
    return fitted


def measure(design: Design, weights: Floats) -> tuple[float, float]:
    order = np.argsort(-(design.rows @ weights.astype(np.float32)), kind="stable")
    found = design.relevant[order]
    return float(found[:5].sum() / found.sum()), float(found[:HITS].sum() / found.sum())


def report(label: str, designs: Sequence[Design], weigh: Callable[[Design], Floats]) -> None:
    results: dict[str, list[tuple[float, float]]] = {}
    for design in designs:
        if design.relevant.any() and design.asked.is_headline:
            results.setdefault(design.asked.family, []).append(measure(design, weigh(design)))
    for family, values in results.items():
        mean, error = np.mean(values, 0), np.std(values, 0) / len(values) ** 0.5
        figures = "  ".join(f"R@{at} {mean[i]:.3f} ± {error[i]:.3f}" for i, at in enumerate((5, HITS)))
        print(f"{label:10} {family:24} {len(values):5}  {figures}", flush=True)


def cross_validate(designs: Sequence[Design]) -> None:
    """Print what the ranking finds in conversations, and in families, that it was not fitted on."""
    names = {each.asked.conversation: number for number, each in enumerate(designs)}
    fold = {name: number % FOLDS for number, name in enumerate(sorted(names))}
    by_fold = [fit_ranking([d for d in designs if fold[d.asked.conversation] != each]) for each in range(FOLDS)]
    report("folds", designs, lambda design: by_fold[fold[design.asked.conversation]])
    kinds = sorted({each.asked.family.partition(" ")[0] for each in designs} - {"relevance"})
    left_out = {kind: fit_ranking([d for d in designs if d.asked.family.partition(" ")[0] != kind]) for kind in kinds}
    answered = [each for each in designs if each.asked.family.partition(" ")[0] in left_out]
    report("left out", answered, lambda design: left_out[design.asked.family.partition(" ")[0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--relevance", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {OUTPUT.name}")
    options = parser.parse_args()
    asked = [*read_families(options.family), *read_relevance(options.relevance, split="dev")]
    designs = [build_design(each) for each in asked if len(each.relevant)]
    weights = fit_ranking(designs)
    report("fitted", designs, lambda design: weights)
    cross_validate(designs)
    labelled = label_hits(designs, weights)
    ranked, spread = fit_relevance(labelled)
    with_meaning, _ = fit_relevance(labelled, without=["ranked"])
    by_words, _ = fit_relevance(labelled, without=["ranked", "meaning"])
    result = {
        "fitted_by": "tools/ranking/fit.py",
        "fitted_at": f"{datetime.now(UTC):%Y-%m-%d}",
        "questions": len(designs),
        "ranking": name_weights(weights),
        "spread": round(spread, 4),
        "relevance": {
            form: {name: round(each, 3) for name, each in fitted.items()}
            for form, fitted in (("ranked", ranked), ("with_meaning", with_meaning), ("by_words", by_words))
        },
    }
    print(json.dumps(result, indent=2))
    if options.write:
        OUTPUT.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
