"""Find the records that match a question best, each with its relevance as a probability.

`tools/ranking/fit.py` fits all numbers on public conversations and on questions with and without an answer; they are
read from `weights.json`. A relevance of 0.5 means: of matches like this one, a person called every second relevant.

It is a product. The first factor is the chance that the best hits hold an answer at all: it depends on the question and
on the best record alone. The second is a hit's share of that chance: it falls with the distance to the best.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, log1p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wellkept.recall.rules_features import (
    NEIGHBOURS,
    Evidence,
    Floats,
    Frame,
    Numbers,
    compute_features,
    merge_forms,
    rarity,
    shortness,
)
from wellkept.recall.rules_question import ParsedQuery

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHTS_FILE = "weights.json"

LARGE = log(1000)
"""Logarithm of the number of records from which a source counts as large."""

LOWEST_LOGIT = -50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BestMatch:
    """Properties of the best match that are comparable between questions, owners and embedders."""

    values: Mapping[str, float]
    records: int  # number of records it was chosen from
    short: float  # 1 for short records and less, down to 0, the longer they are

    def expand(self, value: float) -> tuple[float, float, float]:
        """Return a value three times: for a small source, for a large one, and in addition for short records.

        What a word or a cosine says depends on both, so that each has a weight of its own.
        """
        size = min(1.0, log(self.records) / LARGE)
        return value * (1 - size), value * size, value * self.short


@dataclass(frozen=True, slots=True)
class Relevance:
    """Fitted function of one form of search."""

    answered: Mapping[str, tuple[float, float, float]]  # by value of a match: its weights, see `BestMatch.expand`
    share: Mapping[str, float]  # weights of a hit's share of the chance

    def find_chance(self, match: BestMatch) -> float:
        """Return the chance that the best hits hold an answer."""
        logit = 0.0
        for name, weights in self.answered.items():
            parts = match.expand(match.values[name])
            logit += weights[0] * parts[0] + weights[1] * parts[1] + weights[2] * parts[2]
        return 1 / (1 + exp(-max(logit, LOWEST_LOGIT)))

    def rate(self, match: BestMatch, below: Floats) -> NDArray[np.float64]:
        """Return the relevance of hits that rank `below` the best by so many points."""
        chance, share = self.find_chance(match), self.share
        certain = share["constant"] + share["odds"] * log(chance / (1 - chance + 1e-9) + 1e-9)
        # The second and third hit are often far less relevant than the first, the tenth little less than the ninth.
        logits = certain - share["below"] * below - share["root_below"] * np.sqrt(below)
        relevance: NDArray[np.float64] = chance / (1 + np.exp(-np.maximum(logits, LOWEST_LOGIT)))
        return relevance


@dataclass(frozen=True, slots=True)
class FamilyWeights:
    """Weights by which one family of memories, facts or turns, is ranked and rated."""

    ranking: Mapping[str, tuple[float, float]]  # by feature: for long and for short records
    with_meaning: Relevance
    by_words: Relevance  # for a search without vectors

    @classmethod
    def read(cls, read: Mapping[str, Any]) -> FamilyWeights:
        """Read the weights of a family; a single number counts for records of any length."""
        pairs = {name: each if isinstance(each, list) else (each, each) for name, each in read["ranking"].items()}
        return cls(
            ranking={name: (long, short) for name, (long, short) in pairs.items()},
            with_meaning=Relevance(**read["with_meaning"]),
            by_words=Relevance(**read["by_words"]),
        )

    def weigh(self, shortness: float) -> Mapping[str, float]:
        """Return the weights of the features in the ranking."""
        return {name: long * (1 - shortness) + short * shortness for name, (long, short) in self.ranking.items()}


@dataclass(frozen=True, slots=True)
class Weights:
    """Contents of `weights.json`."""

    facts: FamilyWeights
    turns: FamilyWeights
    history: Mapping[str, float]  # logistic weights of a hit in the audit log or a workflow


@cache
def load_weights() -> Weights:
    """Read the fitted weights."""
    read = json.loads(Path(__file__).with_name(WEIGHTS_FILE).read_text("utf-8"))
    return Weights(FamilyWeights.read(read["facts"]), FamilyWeights.read(read["turns"]), read["history"])


def describe_words(cover: float, terms: int) -> Mapping[str, float]:
    """Return what is known of a record found by its words alone: their share, by rarity, and the question's length."""
    return {"constant": 1.0, "cover": cover, "cover_of_terms": cover * log(1 + terms)}


def rate_words(cover: float, terms: int) -> float:
    """Return the relevance of such a record.

    >>> rate_words(0.9, terms=4) > 0.3 > rate_words(0.1, terms=4)
    True
    """
    weights = load_weights().history
    logit = sum(weights[name] * value for name, value in describe_words(cover, terms).items())
    return 1 / (1 + exp(-logit))


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
    features, weights = compute_features(evidence, question), load_weights()
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
