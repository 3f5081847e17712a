"""Find the records that match a question best, each with its relevance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import log1p

import numpy as np

from recollect.policy.recall import calibration
from recollect.policy.recall.calibration import Match
from recollect.policy.recall.features import compute_features, merge_forms, shortness
from recollect.policy.recall.question import ParsedQuery
from recollect.policy.recall.similarity import NEIGHBOURS, Evidence, Floats, Frame, Numbers, rarity

NO_MATCH = np.float32(-1e6)
"""Score of a record without a vector that, like its neighbours, shares no word with the question."""

LEAST = 0.001
"""Relevance below which a record is no match at all."""

UNSEEN = 100
"""Records added to the store when its best match counts how rare a word is: in a small store every word is."""

RUNNER_UP = 5
"""Place of the record whose distance to the best tells how far that stands out."""


def find_best(
    evidence: Evidence,
    question: ParsedQuery,
    *,
    words_share: float,
    limit: int,
    allowed: Collection[int] | None = None,
) -> dict[int, float]:
    """Return the `limit` best records with their relevance; of equal ones the newest first.

    `allowed` are the numbers of the records to choose from; the others still count as neighbours and for comparison.
    """
    if not len(evidence.seqs):
        return {}
    features = compute_features(evidence, question)
    scores = score_records(evidence, features, words_share=words_share)
    ranked = scores
    if allowed is not None:
        ranked = np.where(np.isin(evidence.seqs, np.fromiter(allowed, np.int64)), scores, NO_MATCH)
    best = int(ranked.argmax())
    if ranked[best] == NO_MATCH:
        return {}
    top = _top_positions(ranked, max(limit, RUNNER_UP))
    top = top[np.lexsort((-evidence.seqs[top], -ranked[top]))]
    weights = calibration.load_weights()
    fitted = weights.by_words if "meaning" not in features else weights.with_meaning
    match = describe_match(evidence, question, features, scores, best)
    relevance = fitted.rate(match, np.float32(ranked[best]) - ranked[top[:limit]])
    kept = relevance >= LEAST
    return dict(zip(evidence.seqs[top[:limit]][kept].tolist(), relevance[kept].tolist(), strict=True))


def score_records(evidence: Evidence, features: dict[str, Floats], *, words_share: float) -> Floats:
    """Weigh the features into one ranking score per record, comparable within a question only."""
    short = shortness(evidence)
    weights = {
        name: calibration.ranking_weight(name, shortness=short, words_share=words_share) for name in features
    }
    return weigh_features(evidence, features, weights)


def weigh_features(evidence: Evidence, features: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return the weighted sum of the features of each record."""
    scores = np.zeros(len(evidence.seqs), np.float32)
    for name, column in features.items():
        if weights[name]:
            scores += np.float32(weights[name]) * column
    # Equal records must tie whatever their place in the arrays, so that the newest comes first.
    scores = np.round(scores, 4)
    if evidence.cosines is None or np.isnan(evidence.cosines).any():
        has_word = features["near"] > 0
        scores[~has_word if evidence.cosines is None else ~has_word & np.isnan(evidence.cosines)] = NO_MATCH
    return scores


def describe_match(
    evidence: Evidence, question: ParsedQuery, features: Mapping[str, Floats], scores: Floats, best: int
) -> Match:
    """Return the properties of the best record that are comparable between questions."""
    # Records that match in no way say nothing about how far the best stands out.
    rated = scores if scores.min() > NO_MATCH else scores[scores > NO_MATCH]
    above = float(scores[best]) - float(rated.mean())
    place = min(RUNNER_UP, len(rated))
    values = {
        "constant": 1.0,
        "score": float(scores[best]),
        "above_mean": above,
        "deviations": above / (float(rated.std()) + 1e-2),
        "above_fifth": float(scores[best]) - float(np.partition(rated, -place)[-place]),
        "best_cover": float(features["cover"].max()),
        "asks": float(features["asks"][best]),
        "asks_time": float(question.asks_time),
        "asks_number": float(question.asks_number),
        **{name: float(features[name][best]) for name in ("own", "near", "around", "cover", "near_cover")},
        **_describe_words(evidence, question, best),
    }
    if (meaning := features.get("meaning")) is not None:
        highest = float(meaning.max())
        values |= {
            "best_meaning": highest,
            "meaning_deviations": (highest - float(meaning.mean())) / (float(meaning.std()) + 1e-2),
            **{name: float(features[name][best]) for name in ("meaning", "near_meaning", "talk_meaning")},
        }
    return Match(values=values, records=len(scores), short=shortness(evidence))


def _describe_words(evidence: Evidence, question: ParsedQuery, best: int) -> Mapping[str, float]:
    """Compare the question's words with the best record, its neighbours, its conversation and the whole store.

    The sums are of rarity: a record with three rare words of the question is more than one with a single one.
    """
    total = len(evidence.seqs)
    frame = evidence.frame or Frame.of(evidence.conversations, evidence.lengths)
    first = int(frame.talk_starts[frame.talk[best]])
    last = int(np.searchsorted(frame.talk, frame.talk[best], side="right"))
    held = near = around = unknown = 0.0
    words = missing = missing_near = unknown_words = names_near = names_missing = unknown_names = 0
    rarest, is_rarest_near = 0.0, False
    merged = merge_forms(evidence.occurrences, question.forms)
    for share, is_name, (rows, _) in zip(question.weights, question.is_name, merged, strict=True):
        weight = share * rarity(total + UNSEEN, len(rows))
        inside = rows[(rows >= first) & (rows < last)]
        distance = int(np.abs(inside - best).min()) if len(inside) else total
        is_held, is_near, is_around = not distance, distance <= len(NEIGHBOURS), distance < total
        held, near, around = held + weight * is_held, near + weight * is_near, around + weight * is_around
        if not len(rows):
            unknown += weight
        elif weight > rarest:
            rarest, is_rarest_near = weight, is_near
        names_near += is_name and is_near
        names_missing += is_name and not is_near
        unknown_names += is_name and not len(rows)
        if share == 1:
            words, missing, missing_near = words + 1, missing + (not is_held), missing_near + (not is_near)
            unknown_words += not len(rows)
    return {
        "terms": log1p(words),
        "is_bare": float(not words),
        "no_word": float(not near),
        "held_rarity": held,
        "near_rarity": near,
        "around_rarity": around,
        "unknown_rarity": unknown,
        "missing": float(missing),
        "missing_near": float(missing_near),
        "unknown_words": float(unknown_words),
        "is_full": float(words > 0 and not missing),
        "is_near_full": float(words > 0 and not missing_near),
        "is_rarest_near": float(is_rarest_near),
        "names_near": float(names_near),
        "names_missing": float(names_missing),
        "unknown_names": float(unknown_names),
    }


def _top_positions(scores: Floats, limit: int) -> Numbers:
    """Return the positions of the `limit` best records, including ties of the last."""
    if limit >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
