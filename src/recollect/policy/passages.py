"""Relevance of passages to a question: the probability that a person would call the passage relevant.

Every passage is weighed by its words (BM25), by the share of the question that it covers, and by its meaning. The
probability of the best passage follows from features that are comparable between questions, tenants and sizes of the
shelf; that of the others from how far they rank below it. `tools/ranking/fit_knowledge.py` fits all weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isnan, log1p, nan

import numpy as np
from numpy.typing import NDArray

from recollect.policy.recall.ranking import BM25_B, BM25_K1
from recollect.policy.recall.similarity import Evidence
from recollect.policy.text import terms

MAX_TERMS = 64
"""Maximum number of terms searched; a long pasted text is searched by its first words."""

DOUBT = 3
"""Number of zero cosines added to the average, because the average of few passages is unreliable."""

FEATURES = ("words", "coverage", "meaning")
WEIGHTS_FILE = "passage_weights.json"

HIT_SHARE = 0.1
"""Share of the floor that a passage must reach once the best one has reached the floor.

An answer often needs several passages, and all but the best are less certain.
"""

WITHOUT_WORDS = 0.5
"""Floor for a best passage with no word of the question: more likely relevant than not."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """Index data on passages for one question, and statistics of the whole shelf.

    The passages may be a selection of the shelf if that is searched inside a database.
    """

    found: Evidence
    total: int  # passages on the shelf
    holding: Sequence[int]  # per query term: passages that contain it
    average_length: float  # in words
    average_cosine: float

    @classmethod
    def of_shelf(cls, found: Evidence) -> PassageEvidence:
        """Build the statistics from the evidence of a whole shelf."""
        known = np.zeros(0, np.float32) if found.cosines is None else found.cosines[~np.isnan(found.cosines)]
        return cls(
            found=found,
            total=len(found.seqs),
            holding=[len(rows) for rows, _ in found.occurrences],
            average_length=float(found.lengths.mean()) if len(found.lengths) else 0.0,
            average_cosine=average_cosine(known),
        )


def average_cosine(cosines: Floats) -> float:
    """Return the average of cosines, closer to 0 the fewer there are."""
    return float(cosines.sum()) / (len(cosines) + DOUBT)


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query."""
    return list(dict.fromkeys(terms(query)))[:MAX_TERMS]


@dataclass(frozen=True, slots=True)
class PassageWeights:
    """Fitted constants, read from `WEIGHTS_FILE`."""

    unseen: float  # passages added to the shelf when it counts how rare a word is
    ranking: Mapping[str, float]  # weights of the features in the order of passages
    spread: float  # change of the relevance, in log odds, per point of the ranking score
    with_meaning: Mapping[str, float]  # logistic weights of the best passage's properties
    by_words: Mapping[str, float]  # the same for a question or a passage without a vector
    floor: float  # probability below which no passage is shown by default


@cache
def load_weights() -> PassageWeights:
    """Read the fitted constants."""
    stored = json.loads(files("recollect.policy").joinpath(WEIGHTS_FILE).read_text("utf-8"))
    return PassageWeights(**{name: stored[name] for name in PassageWeights.__slots__})


def find_best_passages(evidence: PassageEvidence, *, limit: int, floor: float | None = None) -> dict[int, float]:
    """Return the numbers of the `limit` most relevant passages with their probabilities; ties go to the newest.

    If even the best is below the default floor, return none; a given `floor` holds for every passage.
    """
    weights, seqs = load_weights(), evidence.found.seqs
    if not len(seqs):
        return {}
    features = compute_features(evidence, unseen=weights.unseen)
    scores = rank_passages(features, weights)
    if evidence.found.allowed is not None:
        scores = np.where(evidence.found.allowed, scores, np.float32(0))
    best = int(scores.argmax())
    logit = find_logit(describe_best(evidence, features, best, unseen=weights.unseen), weights)
    candidates = np.flatnonzero(scores > 0)
    if limit < len(candidates):
        candidates = candidates[scores[candidates] >= np.partition(scores[candidates], -limit)[-limit]]
    order = candidates[np.lexsort((-seqs[candidates], -scores[candidates]))[:limit]]
    probabilities = 1 / (1 + np.exp(-(logit + weights.spread * (scores[order] - scores[best]))))
    least = floor if floor is not None else HIT_SHARE * weights.floor
    bar = weights.floor if features["coverage"][best] else max(weights.floor, WITHOUT_WORDS)
    is_any = floor is not None or (len(order) > 0 and probabilities[0] >= bar)
    found = dict(zip(seqs[order].tolist(), probabilities.tolist(), strict=True)) if is_any else {}
    return {seq: each for seq, each in found.items() if each >= least}


def rank_passages(features: Mapping[str, Floats], weights: PassageWeights) -> Floats:
    """Return a score by which the passages of one question are ordered; 0 without shared words and near meaning."""
    scores = np.zeros(len(features["words"]), np.float32)
    for name, values in features.items():
        # A passage without a vector is ranked as if its meaning were average.
        scores += np.float32(weights.ranking[name]) * np.nan_to_num(np.maximum(values, 0), nan=0.0)
    # Equal passages must tie whatever their place in the arrays.
    return np.round(scores, 4)


def describe_best(
    evidence: PassageEvidence, features: Mapping[str, Floats], position: int, *, unseen: float
) -> Mapping[str, float]:
    """Return the properties of one passage that are comparable between questions."""
    rarities = [_rarity(evidence.total + unseen, each) for each in evidence.holding]
    nowhere = sum(rarity for rarity, each in zip(rarities, evidence.holding, strict=True) if not each)
    coverage, size = float(features["coverage"][position]), log1p(len(rarities))
    found = {
        "constant": 1.0,
        "coverage": coverage,
        "terms": size,
        "coverage_of_terms": coverage * size,
        "unknown": nowhere / sum(rarities) if rarities else 1.0,
        # On a large shelf, something always matches a little.
        "passages": log1p(evidence.total),
    }
    meaning = float(features["meaning"][position]) if "meaning" in features else nan
    return found if isnan(meaning) else found | {"meaning": meaning, "meaning_of_terms": meaning * size}


def find_logit(properties: Mapping[str, float], weights: PassageWeights) -> float:
    """Return the log odds that a passage with these properties is relevant."""
    fitted = weights.with_meaning if "meaning" in properties else weights.by_words
    return sum(fitted[name] * value for name, value in properties.items())


def compute_features(evidence: PassageEvidence, *, unseen: float) -> Mapping[str, Floats]:
    """Return the features of each passage by name; `meaning` only if the question has a vector, NaN if a passage has
    none.
    """
    found = evidence.found
    words, coverage, reach = np.zeros(len(found.seqs), np.float32), np.zeros(len(found.seqs), np.float32), 0.0
    norms = BM25_K1 * (1 - BM25_B + BM25_B * found.lengths / np.float32(max(evidence.average_length, 1e-9)))
    for holding, (rows, counts) in zip(evidence.holding, found.occurrences, strict=True):
        rarity = _rarity(evidence.total + unseen, holding)
        reach += rarity
        words[rows] += np.float32(rarity * (BM25_K1 + 1)) * counts / (counts + norms[rows])
        coverage[rows] += np.float32(rarity)
    # A passage of average length that contains every word of the question once scores 1.
    scale = np.float32(1 / reach) if reach else np.float32(0)
    features = {"words": words * scale, "coverage": coverage * scale}
    if found.cosines is not None:
        average = evidence.average_cosine
        # Share of the way from the average cosine to 1, because embedders differ in the cosine of unrelated texts.
        features["meaning"] = (found.cosines - np.float32(average)) / np.float32(max(1 - average, 1e-3))
    return features


def _rarity(total: float, holding: int) -> float:
    """Compute the inverse document frequency of BM25; `total` includes unseen passages.

    On a small shelf every word would seem common without them.
    """
    return log1p((total - holding + 0.5) / (holding + 0.5))
