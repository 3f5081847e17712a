"""Rate by the readings of statements which older ones a new one ends.

A reading is a vector of the packaged encoder with other upper layers, in which statements are near that replace each
other ("I live in Turku", "We moved to Aveiro"). The layers and the weights here are fitted together on labelled
conversations, by `tools/facts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wellkept.model import EndedAs

Floats = NDArray[np.float32]

WEIGHTS_FILE = Path(__file__).with_name("ratings.npz")
SCALE = np.float32(np.sqrt(384))
"""Length of the vectors that the weights were fitted to."""

MOST_DOUBT = 0.1
"""Chance that a sentence states nothing, below which it is kept as a remark although rules leave it out."""

ENDINGS = (EndedAs.SUPERSEDED, EndedAs.OVER, EndedAs.WRONG)


def states_something(reading: Floats) -> bool:
    """Return True if a sentence surely states something that lasts."""
    weights = _load_weights()
    shares = np.exp(reading * SCALE @ weights["kind"] + weights["kind_bias"])
    return bool(shares[-1] < MOST_DOUBT * shares.sum())


def rate_endings(old: Floats, new: Floats, around: Floats, signs: Floats) -> tuple[Floats, Sequence[EndedAs]]:
    """Rate the chance that a new statement ends each of some older ones, and return how it would.

    The chance is a logistic function of how near the two are where statements of one attribute are near, the same for
    what is said around the new one, whether the new one tells of a change at all, a small network over the product and
    the difference of the two, and `signs`, a row of `rules_pairs.compare` for each.
    """
    weights = _load_weights()
    old, new, around = old * SCALE, new * SCALE, around * SCALE
    place = _unit(old @ weights["old"] + weights["old_bias"])
    near = place @ _unit(new @ weights["new"] + weights["new_bias"])
    near_around = place @ _unit(around @ weights["around"] + weights["around_bias"])
    pairs = np.concatenate([old * new, np.abs(old - new), old, np.broadcast_to(new, old.shape)], axis=1)
    hidden = _gelu(pairs @ weights["hidden"] + weights["hidden_bias"])
    score = weights["near"] * near + weights["near_around"] * near_around + hidden @ weights["end"]
    score += new @ weights["change"] + signs @ weights["signs"] + weights["bias"]
    kinds = (hidden @ weights["ending"] + weights["ending_bias"]).argmax(1)
    chances: Floats = 1 / (1 + np.exp(-score))
    return chances, [ENDINGS[kind] for kind in kinds]


def _unit(rows: Floats) -> Floats:
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Floats = rows / np.maximum(length, 1e-8)
    return unit


def _gelu(values: Floats) -> Floats:
    # By the hyperbolic tangent, which differs from the exact function by less than 0.001.
    curved: Floats = 0.5 * values * (1 + np.tanh(0.7978846 * (values + 0.044715 * values**3)))
    return curved


@cache
def _load_weights() -> Mapping[str, Floats]:
    with np.load(WEIGHTS_FILE) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}
