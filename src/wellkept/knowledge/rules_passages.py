"""Relevance of passages to a question: the probability that a person would call the passage relevant.

Every passage is weighed by its words (BM25), by the share of the question that it covers, and by its meaning. The
probability follows from the same function as that of a memory (`recall.rules_matching`), so that both can be
compared. `tools/ranking/fit_knowledge.py` fits all weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan, log1p
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wellkept.language.text import terms
from wellkept.recall.rules_features import BM25_B, BM25_K1, Evidence
from wellkept.recall.rules_matching import BestMatch, Relevance

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TERMS = 64
"""Maximum number of terms searched; a long pasted text is searched by its first words."""

DOUBT = 3
"""Number of zero cosines added to the average, because the average of few passages is unreliable."""

UNSEEN = 100
"""Passages added to the shelf when it counts how rare a word is: on a small shelf every word would seem common."""

FEATURES = ("words", "coverage", "meaning")
WEIGHTS_FILE = "passage_weights.json"

Floats: TypeAlias = "NDArray[np.float32]"


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

    ranking: Mapping[str, float]  # weights of the features in the order of passages
    with_meaning: Relevance
    by_words: Relevance  # for a question or a passage without a vector


@cache
def load_weights() -> PassageWeights:
    """Read the fitted constants."""
    read = json.loads(Path(__file__).with_name(WEIGHTS_FILE).read_text("utf-8"))
    with_meaning, by_words = Relevance(**read["with_meaning"]), Relevance(**read["by_words"])
    return PassageWeights(read["ranking"], with_meaning, by_words)


def find_best_passages(evidence: PassageEvidence, is_name: Sequence[bool], *, limit: int) -> dict[int, float]:
    """Return the numbers of the `limit` most relevant passages with their probabilities; ties go to the newest.

    `is_name` tells which of the question's terms are written like a name.
    """
    weights, seqs = load_weights(), evidence.found.seqs
    if not len(seqs):
        return {}
    features = compute_features(evidence)
    scores = rank_passages(features, weights.ranking)
    if evidence.found.allowed is not None:
        scores = np.where(evidence.found.allowed, scores, np.float32(0))
    candidates = np.flatnonzero(scores > 0)
    if not len(candidates):
        return {}
    if limit < len(candidates):
        candidates = candidates[scores[candidates] >= np.partition(scores[candidates], -limit)[-limit]]
    order = candidates[np.lexsort((-seqs[candidates], -scores[candidates]))[:limit]]
    match = describe_best(evidence, is_name, features, scores, int(order[0]))
    fitted = weights.with_meaning if "meaning" in match.values else weights.by_words
    relevance = fitted.rate(match, scores[order[0]] - scores[order])
    return dict(zip(seqs[order].tolist(), relevance.tolist(), strict=True))


def rank_passages(features: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return a score by which the passages of one question are ordered; 0 without shared words and near meaning."""
    scores = np.zeros(len(features["words"]), np.float32)
    for name, values in features.items():
        # A passage without a vector is ranked as if its meaning were average.
        scores += np.float32(weights[name]) * np.nan_to_num(np.maximum(values, 0), nan=0.0)
    # Equal passages must tie whatever their place in the arrays.
    return np.round(scores, 4)


def describe_best(
    evidence: PassageEvidence, is_name: Sequence[bool], features: Mapping[str, Floats], scores: Floats, best: int
) -> BestMatch:
    """Return the properties of the best passage that are comparable between questions."""
    held = missing = unknown = unknown_words = names_near = unknown_names = 0.0
    for holding, (rows, _), of_name in zip(evidence.holding, evidence.found.occurrences, is_name, strict=True):
        weight, is_held = _rarity(evidence.total, holding), bool((rows == best).any())
        held, missing = held + weight * is_held, missing + (not is_held)
        unknown, unknown_words = unknown + weight * (not holding), unknown_words + (not holding)
        names_near, unknown_names = names_near + (of_name and is_held), unknown_names + (of_name and not holding)
    values = {
        "constant": 1.0,
        "score": float(scores[best]),
        "terms": log1p(len(evidence.holding)),
        "own": float(features["words"][best]),
        "cover": float(features["coverage"][best]),
        "best_cover": float(features["coverage"].max()),
        "held_rarity": held,
        "unknown_rarity": unknown,
        "missing": missing,
        "unknown_words": unknown_words,
        "names_near": names_near,
        "unknown_names": unknown_names,
        "no_word": float(not held),
        "is_full": float(held > 0 and not missing),
    }
    if "meaning" in features and not isnan(meaning := float(features["meaning"][best])):
        highest = float(np.nanmax(features["meaning"]))
        values |= {
            "best_meaning": highest,
            "meaning": meaning * (1 - values["no_word"]),
            "wordless_meaning": meaning * values["no_word"],
        }
    # Passages are of one length, so that nothing depends on it.
    return BestMatch(values=values, records=evidence.total, short=0.0)


def compute_features(evidence: PassageEvidence) -> Mapping[str, Floats]:
    """Return the features of each passage by name; `meaning` only if the question has a vector, NaN if a passage has
    none.
    """
    found = evidence.found
    words, coverage, reach = np.zeros(len(found.seqs), np.float32), np.zeros(len(found.seqs), np.float32), 0.0
    norms = BM25_K1 * (1 - BM25_B + BM25_B * found.lengths / np.float32(max(evidence.average_length, 1e-9)))
    for holding, (rows, counts) in zip(evidence.holding, found.occurrences, strict=True):
        rarity = _rarity(evidence.total, holding)
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


def _rarity(total: int, holding: int) -> float:
    """Compute the inverse document frequency of BM25, with `UNSEEN` more passages on the shelf."""
    return log1p((total + UNSEEN - holding + 0.5) / (holding + 0.5))
