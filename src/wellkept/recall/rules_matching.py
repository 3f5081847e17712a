"""Find the records that match a question best, each with its relevance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING

import numpy as np

from wellkept.recall import rules_calibration as calibration
from wellkept.recall.rules_calibration import BestMatch, FamilyWeights
from wellkept.recall.rules_features import compute_features, merge_forms, shortness
from wellkept.recall.rules_question import ParsedQuery
from wellkept.recall.rules_similarity import NEIGHBOURS, Evidence, Floats, Frame, Numbers, rarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_MATCH = -1e6
"""Score of a record without a vector that, like its neighbours, shares no word with the question."""

UNSEEN = 100
"""Records added to the store when its best match counts how rare a word is: in a small store every word is."""


def find_best(evidence: Evidence, question: ParsedQuery, *, limit: int) -> dict[int, float]:
    """Return the `limit` best records with their relevance; of equal ones the newest first.

    Facts and turns are weighed by features of their own, and then compared by their relevance. Records outside
    `evidence.allowed` are not returned, but count as neighbours and for comparison.
    """
    if not len(evidence.seqs):
        return {}
    features, weights = compute_features(evidence, question), calibration.load_weights()
    rated = list[tuple[int, float]]()
    for family, is_member in ((weights.facts, ~evidence.turns), (weights.turns, evidence.turns)):
        if is_member.any():
            rated += _rate_family(evidence, question, features, family, is_member, limit=limit)
    if not rated:
        # Nothing matches, by words alone: the newest are as good as any.
        newest = -np.sort(-(evidence.seqs if evidence.allowed is None else evidence.seqs[evidence.allowed]))
        return dict.fromkeys(newest[:limit].tolist(), 0.0)
    # The sort is stable: records of a family stay in their order.
    return dict(sorted(rated, key=lambda each: -each[1])[:limit])


def _rate_family(
    evidence: Evidence,
    question: ParsedQuery,
    features: Mapping[str, Floats],
    family: FamilyWeights,
    is_member: NDArray[np.bool_],
    *,
    limit: int,
) -> Iterable[tuple[int, float]]:
    """Return the best records of a family with their relevance, best first."""
    scores = score_records(evidence, features, family)
    is_found = is_member if evidence.allowed is None else is_member & evidence.allowed
    ranked = scores if is_found.all() else np.where(is_found, scores, NO_MATCH)
    top = _top_positions(ranked, limit)
    if not len(top):
        return ()
    top = top[np.lexsort((-evidence.seqs[top], -ranked[top]))[:limit]]
    best = int(top[0])
    fitted = family.by_words if "meaning" not in features else family.with_meaning
    match = describe_match(evidence, question, features, scores, best)
    return zip(evidence.seqs[top].tolist(), fitted.rate(match, ranked[best] - ranked[top]).tolist(), strict=True)


def score_records(evidence: Evidence, features: Mapping[str, Floats], family: FamilyWeights) -> Floats:
    """Weigh the features into one ranking score per record, comparable within a question and a family only."""
    scores = np.zeros(len(evidence.seqs), np.float32)
    for name, weight in family.weigh(shortness(evidence)).items():
        if weight and name in features:
            scores += np.float32(weight) * features[name]
    # Equal records must tie whatever their place in the arrays, so that the newest comes first.
    scores = np.round(scores, 4)
    if evidence.cosines is None or np.isnan(evidence.cosines).any():
        has_word = np.where(evidence.turns, features["near"], features["cover"]) > 0
        scores[~has_word if evidence.cosines is None else ~has_word & np.isnan(evidence.cosines)] = NO_MATCH
    return scores


def describe_match(
    evidence: Evidence, question: ParsedQuery, features: Mapping[str, Floats], scores: Floats, best: int
) -> BestMatch:
    """Return the properties of the best record of its family that are comparable between questions."""
    is_turn = bool(evidence.turns[best])
    is_rated = (evidence.turns == is_turn) & (scores > NO_MATCH)
    # Records that match in no way say nothing about how far the best stands out.
    rated = scores[is_rated]
    values = {
        "constant": 1.0,
        "score": float(scores[best]),
        "above_mean": float(scores[best]) - float(rated.mean()),
        "cover": float(features["cover"][best]),
        **_describe_words(evidence, question, best),
    }
    if (meaning := features.get("meaning")) is not None:
        values |= {
            "cosine": float(features["cosine"][best]),
            "best_meaning": float(meaning[is_rated].max()),
            # Meaning without a word in common says something of its own.
            "wordless_meaning": float(meaning[best]) * values["no_word"],
            **{name: float(features[name][best]) for name in ("near_meaning", "talk_meaning")},
        }
    return BestMatch(values=values, records=len(scores), short=shortness(evidence) if is_turn else 0.0)


def _describe_words(evidence: Evidence, question: ParsedQuery, best: int) -> Mapping[str, float]:
    """Compare the question's words with the best record, its neighbours, its conversation and the whole store.

    The sums are of rarity: a record with three rare words of the question is more than one with a single one.
    """
    total = len(evidence.seqs)
    far = total + len(NEIGHBOURS)
    frame = evidence.frame or Frame.of(evidence.conversations, evidence.lengths)
    first, last, is_turn = best, best + 1, bool(evidence.turns[best])
    if is_turn:
        first = int(frame.talk_starts[frame.talk[best]])
        last = int(np.searchsorted(frame.talk, frame.talk[best], side="right"))
    held, around, unknown = 0.0, 0.0, 0.0
    words = missing = missing_near = unknown_words = names_near = unknown_names = 0
    merged = [rows for rows, _ in merge_forms(evidence.occurrences, question.forms)]
    distances = _find_distances(merged, best, range(first, last), far)
    for share, is_name, rows, distance in zip(question.weights, question.is_name, merged, distances, strict=True):
        holding = len(rows)
        weight = share * rarity(total + UNSEEN, holding)
        is_near, is_unknown = distance <= len(NEIGHBOURS), not holding
        held += weight * (not distance)
        around += weight * (distance < far)
        unknown += weight * is_unknown
        names_near, unknown_names = names_near + (is_name and is_near), unknown_names + (is_name and is_unknown)
        if share == 1:
            words, missing, missing_near = words + 1, missing + (distance > 0), missing_near + (not is_near)
            unknown_words += is_unknown
    is_full = words > 0 and not missing
    return {
        "terms": log1p(words),
        "is_bare": float(not words),
        "no_word": float(not around),
        "held_rarity": held,
        "around_rarity": around,
        "unknown_rarity": unknown,
        "missing": float(missing),
        "missing_near": float(missing_near),
        "unknown_words": float(unknown_words),
        "full_rarity": held / words if is_full else 0.0,
        "names_near": float(names_near),
        "unknown_names": float(unknown_names),
    }


def _find_distances(words: Sequence[Numbers], best: int, talk: range, far: int) -> Sequence[int]:
    """Return how near to the best record, within its conversation, each word occurs; `far` if it does not."""
    if not any(map(len, words)):
        return [far] * len(words)
    rows = np.concatenate(words)
    away = np.where((rows >= talk.start) & (rows < talk.stop), np.abs(rows - best), far)
    starts = np.cumsum([0, *map(len, words)])
    # A word without rows would be given the distance of the next one.
    held = [place for place, rows in enumerate(words) if len(rows)]
    distances = np.full(len(words), far)
    distances[held] = np.minimum.reduceat(away, starts[held])
    return distances.tolist()


def _top_positions(scores: Floats, limit: int) -> Numbers:
    """Return the positions of the `limit` best matches, including ties of the last."""
    # Partitioning is slow if most are equal, as records that a filter leaves out are.
    is_match = scores > NO_MATCH
    if limit < len(scores) and is_match.all():
        return np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    matches = is_match.nonzero()[0]
    found = scores[matches]
    return matches[found >= np.partition(found, -limit)[-limit]] if limit < len(found) else matches
