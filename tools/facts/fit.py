"""Fit the score that tells whether a statement ends an older one, and print what it is worth.

    python tools/facts/fit.py              # figures by folds
    python tools/facts/fit.py --write      # and the weights of the package
    python tools/facts/fit.py --final      # and figures on the pairs that are held out

Folds by class know no attribute and no trap from fitting, so they say what is left of the score on others; folds by
chance say what it is worth on more of the same. Each pair is followed by older statements of other classes, which the
new one keeps, because in a store most are about something else. Nothing but numpy is needed.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellkept.facts.rules_pairs import WEIGHTS_FILE, pair_features
from wellkept.facts.rules_statements import Statement, read_statement
from wellkept.providers.minilm import MiniLMEmbedder

FOLDER = Path(__file__).with_name("pairs")
FOLDS = 10
SEED = 5
RIDGE = 3.0
STRANGERS = 4
"""Statements of other classes put before each new one."""

STRANGER_WEIGHT = 0.5
NEAR = 0.55
"""Cosine above which a statement of another class may be about the same after all."""

HARMLESS = {"repeat", "detail"}
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """Two statements and what the new one means for the old one."""

    old: str
    new: str
    label: str
    kind: str
    lang: str
    is_stranger: bool = False

    @property
    def ends(self) -> bool:
        """Return True if the old statement is not current any more."""
        return self.label != "keeps"


_EMBEDDER = MiniLMEmbedder()


@cache
def describe(text: str) -> Statement:
    """Read a statement and embed it."""
    return replace(read_statement(text), vector=_EMBEDDER.embed([text])[0])


def compare(pair: Pair) -> dict[str, float]:
    """Return the features of a pair."""
    return pair_features(describe(pair.old), describe(pair.new))


def read_pairs(path: Path) -> list[Pair]:
    """Read the pairs of a file."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [Pair(row["old"], row["new"], row["label"], row["class"], row["lang"]) for row in rows]


def add_strangers(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs, each followed by its new statement after older ones of other classes."""
    draw = random.Random(SEED)
    found: list[Pair] = []
    for pair in pairs:
        found.append(pair)
        others = [each for each in pairs if each.kind != pair.kind and each.lang == pair.lang]
        for other in draw.sample(others, STRANGERS):
            if compare(Pair(other.old, pair.new, "keeps", "", ""))["cosine"] < NEAR:
                found.append(Pair(other.old, pair.new, "keeps", pair.kind, pair.lang, True))
    return found


def assign_folds(pairs: Sequence[Pair], by_class: bool) -> NDArray[np.int64]:
    """Return the fold of each pair. What has the same class, or else the same new statement, stays together."""
    groups = [pair.kind if by_class else pair.new for pair in pairs]
    sizes = list(Counter(groups).items())
    random.Random(SEED).shuffle(sizes)
    filled = [0] * FOLDS
    folds: dict[str, int] = {}
    for group, size in sorted(sizes, key=lambda item: -item[1]):
        folds[group] = min(range(FOLDS), key=lambda number: filled[number])
        filled[folds[group]] += size
    return np.array([folds[group] for group in groups])


def fit(values: Floats, ends: Floats, weights: Floats, ridge: float = RIDGE) -> Floats:
    """Fit a logistic regression by Newton's method and return its weights, the constant last.

    minimize Σ w·log(1 + exp(-±x·β)) + ridge/2·Σ (sd·β)², so that a feature's unit does not matter
    """
    mean, spread = values.mean(0), values.std(0) + 1e-9
    scaled = np.c_[(values - mean) / spread, np.ones(len(values))]
    penalty = np.diag([*[ridge] * values.shape[1], 0.0])
    beta = np.zeros(scaled.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-scaled @ beta))
        gradient = scaled.T @ (weights * (chance - ends)) + penalty @ beta
        curve = (scaled.T * (weights * chance * (1 - chance))) @ scaled + penalty + 1e-9 * np.eye(len(beta))
        step = np.linalg.solve(curve, gradient)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    slopes = beta[:-1] / spread
    return np.r_[slopes, beta[-1] - slopes @ mean]


def rate(values: Floats, beta: Floats) -> Floats:
    """Return the chance of each pair that the old statement ends."""
    chances: Floats = 1 / (1 + np.exp(-(values @ beta[:-1] + beta[-1])))
    return chances


def cross_validate(pairs: Sequence[Pair], values: Floats, by_class: bool) -> Floats:
    """Return the chance of each pair by weights that were fitted on the other folds."""
    folds, ends, weights = assign_folds(pairs, by_class), find_ends(pairs), find_weights(pairs)
    chances = np.zeros(len(pairs))
    for fold in range(FOLDS):
        rest, here = folds != fold, folds == fold
        chances[here] = rate(values[here], fit(values[rest], ends[rest], weights[rest]))
    return chances


def find_ends(pairs: Sequence[Pair]) -> Floats:
    """Return 1 for each pair whose old statement ends."""
    return np.array([float(pair.ends) for pair in pairs])


def find_weights(pairs: Sequence[Pair]) -> Floats:
    """Return how much each pair counts."""
    return np.array([STRANGER_WEIGHT if pair.is_stranger else 1.0 for pair in pairs])


def compute_features(pairs: Sequence[Pair]) -> tuple[list[str], Floats]:
    """Return the names of the features, and a row of values for each pair."""
    rows = [compare(pair) for pair in pairs]
    names = [name for name in rows[0] if len({row[name] for row in rows}) > 1]
    return names, np.array([[row[name] for name in names] for row in rows])


def print_figures(title: str, pairs: Sequence[Pair], chances: Floats) -> None:
    """Print precision and recall, among the pairs and among all statements.

    Ending a statement that the new one repeats in other words takes nothing away from a reader, so a precision without
    these is printed, too.
    """
    ends = find_ends(pairs) == 1
    is_pair = np.array([not pair.is_stranger for pair in pairs])
    is_harmful = np.array([not pair.ends and not pair.is_stranger and pair.kind not in HARMLESS for pair in pairs])
    print(f"\n{title}: {ends.sum()} end, {(is_pair & ~ends).sum()} keep, {(~is_pair).sum()} strangers")
    print(f"rank of an ending above a keeping pair (AUC): {find_area(ends[is_pair], chances[is_pair]):.3f}")
    print("chance  recall  precision  without repeats  with strangers  strangers ended")
    for threshold in THRESHOLDS:
        is_ended = chances >= threshold
        right, wrong, harm = ((is_ended & each).sum() for each in (ends, is_pair & ~ends, is_harmful))
        strangers = (is_ended & ~is_pair).sum()
        shares = [right / ends.sum(), *(right / max(right + each, 1) for each in (wrong, harm, wrong + strangers))]
        print(f"  {threshold:.1f}   " + "     ".join(f"{share:.3f}" for share in shares) + f"     {strangers}")


def find_area(ends: NDArray[np.bool_], chances: Floats) -> float:
    """Return how often an ending pair has a higher chance than a keeping one."""
    ranks = chances.argsort().argsort()
    count = ends.sum()
    return float((ranks[ends].sum() - count * (count - 1) / 2) / (count * (len(ends) - count)))


def print_groups(pairs: Sequence[Pair], chances: Floats, threshold: float) -> None:
    """Print the share that is ended, by class and by language."""
    for title, key in (
        ("label", lambda each: each.label),
        ("language", lambda each: each.lang),
        ("class", lambda each: each.kind),
    ):
        print(f"\n{title}: ended at {threshold}")
        groups: dict[tuple[str, str], list[bool]] = {}
        for pair, chance in zip(pairs, chances, strict=True):
            if not pair.is_stranger:
                groups.setdefault((key(pair), "ends" if pair.ends else "keeps"), []).append(bool(chance >= threshold))
        for (name, side), values in sorted(groups.items(), key=lambda item: (item[0][1], -np.mean(item[1]))):
            print(f"  {side:5} {name:28} {np.mean(values):.2f} of {len(values)}")


def write_weights(names: Sequence[str], beta: Floats, about: Mapping[str, object]) -> None:
    """Write the weights for the package."""
    weights = {name: round(float(value), 4) for name, value in zip([*names, "bias"], beta, strict=True)}
    WEIGHTS_FILE.write_text(
        json.dumps({"about": about, "weights": weights}, indent=1, ensure_ascii=False) + "\n", "utf-8"
    )


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--final", action="store_true", help="rate the pairs that are held out, once at the end")
    parser.add_argument("--write", action="store_true", help="write the weights of the package")
    parser.add_argument("--groups", type=float, metavar="CHANCE", help="print what is ended by class, at this chance")
    arguments = parser.parse_args()
    pairs = add_strangers(read_pairs(FOLDER / "pairs.jsonl"))
    names, values = compute_features(pairs)
    for title, by_class in (("class", True), ("chance", False)):
        chances = cross_validate(pairs, values, by_class)
        print_figures(f"{len(names)} features, {FOLDS} folds by {title}", pairs, chances)
    if arguments.groups:
        print_groups(pairs, chances, arguments.groups)
    beta = fit(values, find_ends(pairs), find_weights(pairs))
    if arguments.write:
        write_weights(names, beta, {"pairs": sum(not pair.is_stranger for pair in pairs), "by": "tools/facts/fit.py"})
    if arguments.final:
        unseen = add_strangers(read_pairs(FOLDER / "held_out.jsonl"))
        rows = [compare(pair) for pair in unseen]
        print_figures("held out", unseen, rate(np.array([[row[name] for name in names] for row in rows]), beta))


if __name__ == "__main__":
    main()
