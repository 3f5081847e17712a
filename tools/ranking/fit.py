"""Fit the map of questions to answers and the weights of recall on labelled memories. Needs scipy."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from answer_map import fit_maps, write_map
from numpy.typing import NDArray
from records import (
    ANSWERABLE,
    FOLDS,
    MEANING,
    WORDS,
    Asked,
    answer_maps,
    fold_of,
    read_all,
    read_families,
    read_relevance,
    read_vectors,
    write_vectors,
)
from relevance import HITS, Rated, fit_history, fit_relevance, rank, rate_questions, write_weights
from scipy.optimize import minimize

from wellkept.model import WEAK
from wellkept.recall import rules_matching
from wellkept.recall.rules_matching import NO_MATCH, WEIGHTS_FILE, Relevance

OUTPUT = Path(rules_matching.__file__).with_name(WEIGHTS_FILE)
VECTORS = Path("build/ranking_vectors.npz")

TURNS_BY_LENGTH = [*sorted(WORDS - {"around_held"}), *sorted(MEANING - {"cosine"}), "length"]
"""Features of turns whose weight may differ between short and long ones."""

TURNS_OTHERS = (
    "other_speaker named other_name other_day other_time asks asking echo self time asked_time number asked_number"
).split()
FACTS = ["cosine", "cover", "around_held", "other_day", "other_time", "echo"]

RIDGE = 3e-3
FAMILY_SHARE = {
    "keywords": 0.1,
    "small": 0,
    "beside turns": 0.3,
    "relevance": 0.5,
    "pairs 20": 0.3,
    "pairs": 0.5,
    "facts": 4,
}
"""Weight of families that count less than the others in the ranking; in a small store everything is near the top."""

Floats = NDArray[np.float64]
Ranking = Mapping[str, tuple[float, float]]


class Design(NamedTuple):
    """One question as numbers: a row for each memory of the kind that is fitted, and which rows are relevant."""

    asked: Asked
    rows: NDArray[np.float32]
    relevant: NDArray[np.bool_]


def build_design(asked: Asked, *, is_turn: bool) -> Design:
    of = asked.evidence.turns == is_turn
    none = np.zeros(len(of), np.float32)
    names = [*TURNS_BY_LENGTH, *TURNS_OTHERS] if is_turn else FACTS
    columns = np.stack([asked.features.get(name, none)[of] for name in names], 1)
    # The question itself as a memory is no answer to it.
    known = {"own": 1, "near": 1, "cover": 1, "near_cover": 1, "meaning": 1, "cosine": 1, "talk_meaning": 1, "asks": 1}
    known |= {"echo": 1, "asking": 1, "length": np.log1p(len(asked.question.weights) + 2)}
    columns = np.vstack([columns, np.array([known.get(name, 0) for name in names], np.float32)])
    if is_turn:
        columns = _split_by_length(columns, asked.short)
    return Design(asked, columns, np.append(asked.relevant[of], False))


def _split_by_length(columns: NDArray[np.float32], short: float) -> NDArray[np.float32]:
    """Return the columns of `TURNS_BY_LENGTH` twice, for long and for short records, then the others."""
    first = columns[..., : len(TURNS_BY_LENGTH)]
    both = (first * np.float32(1 - short), first * np.float32(short), columns[..., len(TURNS_BY_LENGTH) :])
    return np.concatenate(both, -1)


def fit_ranking(asked: Sequence[Asked], *, is_turn: bool) -> Ranking:
    """Maximise the chance that a relevant memory is drawn before all others, every family counting the same."""
    answered = [each for each in asked if (each.relevant & (each.evidence.turns == is_turn)).any()]
    designs = [build_design(each, is_turn=is_turn) for each in answered if FAMILY_SHARE.get(each.family, 1)]
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
    names = [*TURNS_BY_LENGTH, *TURNS_BY_LENGTH, *TURNS_OTHERS] if is_turn else FACTS
    least = [0.0 if name in WORDS | MEANING else None for name in names]
    bounds, options = [(each, None) for each in least], {"maxiter": 150}
    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return _name_weights((found.x / scale).round(3).tolist(), is_turn=is_turn)


def _name_weights(weights: Sequence[float], *, is_turn: bool) -> Ranking:
    """Return the weight of each feature for long and for short records."""
    if not is_turn:
        return {name: (each, each) for name, each in zip(FACTS, weights, strict=True)}
    count = len(TURNS_BY_LENGTH)
    by_length = zip(TURNS_BY_LENGTH, weights[:count], weights[count : 2 * count], strict=True)
    others = {name: (each, each) for name, each in zip(TURNS_OTHERS, weights[2 * count :], strict=True)}
    return {name: (long, short) for name, long, short in by_length} | others


class Fitted(NamedTuple):
    """All that is fitted of facts or of turns."""

    ranking: Ranking
    with_meaning: Relevance
    by_words: Relevance

    def list_weights(self) -> Mapping[str, Any]:
        ranking = {name: list(each) if each[0] != each[1] else each[0] for name, each in self.ranking.items()}
        return {"ranking": ranking, "with_meaning": asdict(self.with_meaning), "by_words": asdict(self.by_words)}


def fit_family(asked: Sequence[Asked], *, is_turn: bool) -> Fitted:
    ranking = fit_ranking(asked, is_turn=is_turn)
    rated = [rate_questions(asked, ranking, is_turn=is_turn, by_words=each) for each in (False, True)]
    return Fitted(ranking, *map(fit_relevance, rated))


def rate_all(asked: Asked, fitted: Sequence[Fitted]) -> Floats:
    """Return the relevance of each memory, 0 for those that are not among the best."""
    rates = np.zeros(len(asked.relevant))
    for is_turn, of in enumerate(fitted):
        scores = np.where(asked.evidence.turns == bool(is_turn), rank(asked, of.ranking), NO_MATCH)
        rated: Sequence[Rated] = rate_questions([asked], of.ranking, is_turn=bool(is_turn), by_words=False)
        if rated:
            top = np.argsort(-scores, kind="stable")[: len(rated[0].below)]
            rates[top] = of.with_meaning.rate(rated[0].match, rated[0].below)
    return rates


def report(label: str, results: Sequence[tuple[Asked, Floats]]) -> None:
    """Print what is found of each family, how well it is told from what nobody knows, and the calibration."""
    groups = defaultdict[str, list[tuple[Asked, Floats]]](list)
    for asked, rates in results:
        groups[asked.family].append((asked, rates))
    for family, some in sorted(groups.items()):
        found, first, foreign = list[tuple[float, float]](), list[tuple[float, bool]](), list[float]()
        for asked, rates in some:
            order = np.argsort(-rates, kind="stable")
            relevant = asked.relevant[order] & (rates[order] > 0)
            if asked.kind == ANSWERABLE and asked.relevant.any():
                total = asked.relevant.sum()
                found.append((float(relevant[:5].sum() / total), float(relevant[:HITS].sum() / total)))
                first.append((float(rates[order[0]]), bool(relevant[0])))
            elif not asked.relevant.any():
                foreign.append(float(rates[order[0]]))
        if found:
            mean, error = np.mean(found, 0), np.std(found, 0) / len(found) ** 0.5
            best = np.array([each for each, _ in first])
            auc = np.mean([(best > each).mean() + (best == each).mean() / 2 for each in foreign]) if foreign else 0
            print(
                f"{label:8} {family:13} {len(found):4}  R@5 {mean[0]:.3f}  R@{HITS} {mean[1]:.3f} ± {error[1]:.3f}  "
                f"AUC {auc:.3f}  first {np.mean(best):.2f} rated, "
                f"{np.mean([is_hit for _, is_hit in first]):.2f} relevant  "
                f"weak: {np.mean(best < WEAK):.2f} answerable, {np.mean(np.array(foreign) < WEAK):.2f} others",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--pairs", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--relevance", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--knowledge", type=Path, nargs="*", default=[], metavar="FILE", help="also fit the passages")
    parser.add_argument(
        "--write", action="store_true", help=f"write {OUTPUT.name}, and with --knowledge that of passages"
    )
    parser.add_argument("--validate", action="store_true", help="also fit on other conversations than are measured")
    options = parser.parse_args()
    read_vectors(VECTORS)
    conversations = [*read_families(options.family)]
    answer_maps.update(fit_maps(conversations, options.pairs))
    asked = [*read_all(conversations, options.pairs, options.relevance)]
    asked += read_relevance(options.relevance, split="dev")
    unseen = [*read_relevance(options.relevance, split="test")]
    VECTORS.parent.mkdir(exist_ok=True)
    write_vectors(VECTORS)
    fitted = [fit_family(asked, is_turn=each) for each in (False, True)]
    if options.write:
        write_map(answer_maps[None])
        by_words = rate_questions(asked, fitted[1].ranking, is_turn=True, by_words=True)
        facts, turns = (each.list_weights() for each in fitted)
        write_weights(OUTPUT, {"facts": facts, "turns": turns, "history": fit_history(by_words)})
    report("fitted", [(each, rate_all(each, fitted)) for each in asked])
    report("unseen", [(each, rate_all(each, fitted)) for each in unseen])
    if options.validate:
        results = list[tuple[Asked, Floats]]()
        for fold in range(FOLDS):
            others = [each for each in asked if fold_of(each) != fold]
            other = [fit_family(others, is_turn=each) for each in (False, True)]
            results += [(each, rate_all(each, other)) for each in asked if fold_of(each) == fold]
        report("folds", results)
    if options.knowledge:
        import fit_knowledge

        fit_knowledge.main([*options.knowledge, *options.relevance], write=options.write)


if __name__ == "__main__":
    main()
