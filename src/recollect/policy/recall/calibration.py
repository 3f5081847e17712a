"""Relevance of a match as a probability, and the weights of the features it is ranked by.

Both were fitted by `tools/ranking/fit.py` on public conversations and on questions with and without an answer, and are
read from `weights.json`. A relevance of 0.5 means: of matches like this one, a person called every second relevant. It
does not depend on the other matches of the question, so it is comparable between questions, agents and sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import exp, log1p

WEIGHTS_FILE = "weights.json"

DEFAULT_WORDS_SHARE = 0.67
"""Setting `similarity_words` at which the weights are used as fitted."""

HIT_SHARE = 0.03
"""Share of the floor that a hit must reach once the best hit of its source has reached the floor.

A question often needs several memories, and all but the best are less certain.
"""

WORDS = frozenset({"own", "near", "around", "cover", "near_cover"})
MEANING = frozenset({"meaning", "near_meaning", "talk_meaning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFeatures:
    """Properties of a match that are comparable between questions and sources."""

    cover: float  # share of the question's words, by rarity, that the text holds
    near_cover: float | None = None  # the same with its neighbours; None: it has none
    meaning: float | None = None  # share of the way from the average cosine to 1; None: searched by words alone
    terms: int  # number of words in the question that name something
    unknown: float = 0.0  # share of the question's words, by rarity, that occur nowhere in the source
    unknown_names: int = 0  # number of names in the question that occur nowhere in the source
    ranked: Mapping[str, float] | None = None  # standing of the best record among all; None: the others are unknown

    def values(self) -> Mapping[str, float]:
        """Return the inputs of the fitted function by name."""
        near_cover = self.cover if self.near_cover is None else self.near_cover
        size = log1p(self.terms)
        found = {
            "cover": self.cover,
            "cover_cubed": self.cover**3,
            "near_cover": near_cover,
            "terms": size,
            "cover_of_terms": self.cover * size,
            "unknown": self.unknown,
            "unknown_of_terms": self.unknown * size,
            "no_word": float(near_cover == 0),
            "is_bare": float(self.terms == 0),
            "unknown_names": float(min(self.unknown_names, 2)),
            "constant": 1.0,
        }
        if self.meaning is not None:
            found |= {
                "meaning": self.meaning,
                "meaning_squared": self.meaning**2,
                "meaning_of_terms": self.meaning * size,
                "meaning_without_word": self.meaning * found["no_word"],
            }
        return found if self.ranked is None else {**found, **self.ranked}

    @property
    def form(self) -> str:
        """Name of the fitted function that takes these inputs."""
        if self.meaning is None:
            return "by_words"
        return "with_meaning" if self.ranked is None else "ranked"


@dataclass(frozen=True, slots=True)
class Weights:
    """Contents of `weights.json`."""

    ranking: Mapping[str, tuple[float, float]]  # by feature: for long and for short records
    spread: float  # change of the relevance, in logits, per point of the ranking score
    relevance: Mapping[str, Mapping[str, float]]  # by form of a match: the weights of its values


@cache
def load_weights() -> Weights:
    """Read the fitted weights."""
    read = json.loads(resources.files(__package__).joinpath(WEIGHTS_FILE).read_text("utf-8"))
    return Weights(
        ranking={name: (each[0], each[1]) for name, each in read["ranking"].items()},
        spread=read["spread"],
        relevance=read["relevance"],
    )


def calibrate(match: MatchFeatures) -> float:
    """Return the probability that a person would call a match relevant.

    >>> full = calibrate(MatchFeatures(cover=0.9, meaning=0.6, terms=4))
    >>> full > 0.5 > calibrate(MatchFeatures(cover=0.1, meaning=0.1, terms=4))
    True
    """
    return 1 / (1 + exp(-find_logit(match)))


def find_logit(match: MatchFeatures) -> float:
    """Return the same as log odds."""
    fitted = load_weights().relevance[match.form]
    return sum(fitted[name] * value for name, value in match.values().items())


def keep_relevant(similarities: Sequence[float], *, floor: float, is_strict: bool) -> list[bool]:
    """Tell which matches of one source to keep: none if the best is below the floor.

    If it is not, others may be lower by `HIT_SHARE`, unless `is_strict`.

    >>> keep_relevant([0.6, 0.1, 0.001], floor=0.5, is_strict=False)
    [True, True, False]
    >>> keep_relevant([0.4, 0.1], floor=0.5, is_strict=False), keep_relevant([0.6, 0.1], floor=0.5, is_strict=True)
    ([False, False], [True, False])
    """
    is_any = max(similarities, default=0.0) >= floor
    least = floor if is_strict else floor * HIT_SHARE
    return [is_any and each >= least for each in similarities]


def ranking_weight(name: str, *, shortness: float, words_share: float) -> float:
    """Return the weight of a ranking feature; `words_share` tilts the fitted balance of words and meaning."""
    long, short = load_weights().ranking.get(name, (0.0, 0.0))
    weight = long * (1 - shortness) + short * shortness
    if name in WORDS:
        weight *= words_share / DEFAULT_WORDS_SHARE
    elif name in MEANING:
        weight *= (1 - words_share) / (1 - DEFAULT_WORDS_SHARE)
    return weight
