"""Relevance as a probability, and the weights of the features that records are ranked by.

`tools/ranking/fit.py` fits all numbers on public conversations and on questions with and without an answer; they are
read from `weights.json`. A relevance of 0.5 means: of matches like this one, a person called every second relevant.

It is a product. The first factor is the chance that the best hits hold an answer at all: it depends on the question and
on the best record alone. The second is a hit's share of that chance: it falls with the distance to the best.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


WEIGHTS_FILE = "weights.json"

LARGE = log(1000)
"""Logarithm of the number of records from which a source counts as large."""

LOWEST_LOGIT = -50.0

Floats: TypeAlias = "NDArray[np.float32]"


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
