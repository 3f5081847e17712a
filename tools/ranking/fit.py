"""Fit the weights of recall on labelled conversations and write them to `weights.json`. Needs scipy."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import fit_knowledge
import numpy as np
from numpy.typing import NDArray
from records import Asked, read_families, read_relevance
from relevance import (
    COST,
    HITS,
    SILENT,
    Rated,
    choose_floors,
    fit_history,
    fit_relevance,
    rate_questions,
    report_floors,
    write_weights,
)
from scipy.optimize import minimize

from wellkept.policy import passages
from wellkept.policy.recall import calibration
from wellkept.policy.recall.calibration import MEANING, WORDS, Relevance

OUTPUT = Path(calibration.__file__).with_name(calibration.WEIGHTS_FILE)
BY_LENGTH = [*sorted(WORDS), *sorted(MEANING), "length"]
"""Features whose weight may differ between short and long records."""

OTHERS = (
    "other_speaker named other_name other_day other_time asks asking echo self time asked_time number asked_number"
).split()
RIDGE = 3e-3
FAMILY_SHARE = {"keywords": 0.1, "small": 0}
"""Weight of families that count less than the others in the ranking; in a small store everything is near the top."""

FOLDS = 4
FLOORS = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2)
"""Floors that are reported."""

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
    designs = [add_echo(each) for each in designs if each.relevant.any() and FAMILY_SHARE.get(each.asked.family, 1)]
    count = Counter(each.asked.family for each in designs)
    shares = np.array([FAMILY_SHARE.get(each.asked.family, 1) / count[each.asked.family] for each in designs])
    shares /= shares.sum()
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


def weigh(weights: Floats) -> Callable[[Asked], Mapping[str, float]]:
    """Return a function that gives the weights of the features for a question."""
    named = name_weights(weights)
    return lambda asked: {name: long * (1 - asked.short) + short * asked.short for name, (long, short) in named.items()}


def validate_ranking(label: str, designs: Sequence[Design], part_of: Callable[[Asked], str]) -> None:
    """Fit the ranking without each part in turn, and print what that finds in it."""
    parts = {part_of(each.asked) for each in designs} - {""}
    weights = {part: fit_ranking([each for each in designs if part_of(each.asked) != part]) for part in parts}
    report(label, [each for each in designs if part_of(each.asked)], lambda design: weights[part_of(design.asked)])


def validate_relevance(label: str, rated: Sequence[Rated], parts: Sequence[str]) -> None:
    """Fit the relevance without each part in turn, and print what the floors cost and silence in it."""
    found = list[tuple[Rated, Relevance]]()
    for part in sorted({*parts} - {""}):
        fitted = fit_relevance([each for each, of in zip(rated, parts, strict=True) if of != part])
        found += [(each, fitted) for each, of in zip(rated, parts, strict=True) if of == part]
    report_floors(label, found, FLOORS)
    cheap, silencing = choose_floors(found)
    print(f"{label}: floor {cheap:g} costs {COST:.0%} of R@10 on average, floor {silencing:g} silences {SILENT:.0%}")


def fold_of(asked: Asked) -> str:
    """Return the fold of a conversation; all its questions are in the same."""
    return str(crc32(asked.conversation.encode()) % FOLDS)


def family_of(asked: Asked) -> str:
    family = asked.family.partition(" ")[0]
    return family if family not in ("keywords", "small") else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--relevance", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--knowledge", type=Path, nargs="*", default=[], metavar="FILE", help="also fit the passages")
    parser.add_argument("--write", action="store_true", help=f"write {OUTPUT.name} and {passages.WEIGHTS_FILE}")
    parser.add_argument("--validate-ranking", action="store_true", help="also cross-validate the ranking (slow)")
    options = parser.parse_args()
    asked = [*read_families(options.family, options.relevance), *read_relevance(options.relevance, split="dev")]
    designs = [build_design(each) for each in asked if len(each.relevant)]
    weights = fit_ranking(designs)
    report("fitted", designs, lambda design: weights)
    if options.validate_ranking:
        validate_ranking("folds", designs, fold_of)
        validate_ranking("left out", designs, family_of)
    asked = [each.asked for each in designs]
    with_meaning, by_words = (rate_questions(asked, weigh(weights), by_words=each) for each in (False, True))
    validate_relevance("folds", with_meaning, [fold_of(each.asked) for each in with_meaning if each.asked])
    validate_relevance("left out", with_meaning, [family_of(each.asked) for each in with_meaning if each.asked])
    fitted = fit_relevance(with_meaning)
    unseen = rate_questions([*read_relevance(options.relevance, split="test")], weigh(weights), by_words=False)
    report_floors("test", [(each, fitted) for each in unseen], FLOORS)
    result = {
        "fitted_by": "tools/ranking/fit.py",
        "fitted_at": f"{datetime.now(UTC):%Y-%m-%d}",
        "questions": len(designs),
        "ranking": name_weights(weights),
        "with_meaning": asdict(fitted),
        "by_words": asdict(fit_relevance(by_words)),
        "history": fit_history(by_words),
    }
    if options.write:
        write_weights(OUTPUT, result)
    if options.knowledge:
        fit_knowledge.main([*options.knowledge, *options.relevance], write=options.write)


if __name__ == "__main__":
    main()
