"""Find the records that match a question best, each with its relevance."""

from __future__ import annotations

from math import log

import numpy as np

from recollect.policy.recall import calibration
from recollect.policy.recall.calibration import MatchFeatures
from recollect.policy.recall.features import compute_features, find_unknown, shortness
from recollect.policy.recall.question import ParsedQuery
from recollect.policy.recall.similarity import Evidence, Floats, Numbers

NO_MATCH = np.float32(-1e6)
"""Score of a record without a vector that, like its neighbours, shares no word with the question."""

LOWEST_LOGIT = np.float32(-50)
LEAST = 0.001
"""Relevance below which a record is no match at all."""


def find_best(
    evidence: Evidence,
    question: ParsedQuery,
    *,
    words_share: float,
    limit: int,
) -> dict[int, float]:
    """Return the `limit` best records with their relevance; of equal ones the newest first.

    The best record's relevance follows from its features; that of the others from how far they rank below it.
    """
    if not len(evidence.seqs):
        return {}
    features = compute_features(evidence, question)
    scores = score_records(evidence, features, words_share=words_share)
    ranked = scores
    if evidence.allowed is not None:
        ranked = np.where(evidence.allowed, scores, NO_MATCH)
    best = int(ranked.argmax())
    if ranked[best] == NO_MATCH:
        return {}
    logit = calibration.find_logit(describe_match(evidence, question, features, scores, best))
    top = _top_positions(ranked, limit)
    logits = logit + calibration.load_weights().spread * (ranked[top] - ranked[best])
    seqs = evidence.seqs[top]
    order = np.lexsort((-seqs, -logits))[:limit]
    relevance = 1 / (1 + np.exp(-np.maximum(logits[order], LOWEST_LOGIT)))
    kept = relevance >= LEAST
    return dict(zip(seqs[order][kept].tolist(), relevance[kept].tolist(), strict=True))


def score_records(evidence: Evidence, features: dict[str, Floats], *, words_share: float) -> Floats:
    """Weigh the features into one ranking score per record, comparable within a question only."""
    scores, short = np.zeros(len(evidence.seqs), np.float32), shortness(evidence)
    for name, column in features.items():
        weight = calibration.ranking_weight(name, shortness=short, words_share=words_share)
        if weight:
            scores += np.float32(weight) * column
    # Equal records must tie whatever their place in the arrays, so that the newest comes first.
    scores = np.round(scores, 4)
    if evidence.cosines is None or np.isnan(evidence.cosines).any():
        has_word = features["near"] > 0
        scores[~has_word if evidence.cosines is None else ~has_word & np.isnan(evidence.cosines)] = NO_MATCH
    return scores


def describe_match(
    evidence: Evidence, question: ParsedQuery, features: dict[str, Floats], scores: Floats, best: int
) -> MatchFeatures:
    """Return the properties of the best record that are comparable between questions."""
    unknown, unknown_names = find_unknown(evidence, question)
    meaning = features.get("meaning")
    return MatchFeatures(
        cover=float(features["cover"][best]),
        near_cover=float(features["near_cover"][best]),
        meaning=None if meaning is None else float(meaning[best]),
        terms=question.count_content(),
        unknown=unknown,
        unknown_names=unknown_names,
        ranked=None if meaning is None else _describe_rank(evidence, features, scores, best),
    )


def _describe_rank(evidence: Evidence, features: dict[str, Floats], scores: Floats, best: int) -> dict[str, float]:
    mean = float(scores.mean())
    return {
        "score": float(scores[best]),
        "above_mean": float(scores[best]) - mean,
        "deviations": (float(scores[best]) - mean) / (float(scores.std()) + 1e-6),
        "records": log(len(scores)),
        "short": shortness(evidence),
        "best_cover": float(features["cover"].max()),
        "best_near_cover": float(features["near_cover"].max()),
        "best_meaning": float(features["meaning"].max()),
    }


def _top_positions(scores: Floats, limit: int) -> Numbers:
    """Return the positions of the `limit` best matches, including ties of the last."""
    # Partitioning is slow if most are equal, as records that a filter leaves out are.
    matches = np.flatnonzero(scores > NO_MATCH)
    found = scores[matches]
    return matches[found >= np.partition(found, -limit)[-limit]] if limit < len(found) else matches
