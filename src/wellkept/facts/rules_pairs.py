"""Decide whether a new statement ends an older one of the same user.

Two opinions: a score by hand behind gates for subject and shared evidence, and the chance that `rules_ratings` computes
from the readings of both. Cosine says that two statements have the same topic, never that they are the same fact, so no
cosine alone ends anything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

import numpy as np

from wellkept.facts.rules_ratings import rate_endings
from wellkept.facts.rules_statements import (
    EXACT_SHAPES,
    PEOPLE_OF_USER,
    USER,
    ChangeCue,
    Statement,
    weigh,
)
from wellkept.facts.rules_words import load_attributes, load_kinds, load_names
from wellkept.language.text import terms
from wellkept.model import EndedAs

# Thresholds of the score by hand.
THRESHOLDS = {
    ChangeCue.CORRECTION: 0.62,
    ChangeCue.END: 0.62,
    ChangeCue.FIRM: 0.62,
    ChangeCue.SOFT: 0.68,
    ChangeCue.ALSO: math.inf,
    ChangeCue.NONE: 0.95,
}
SAME_SLOT = 0.80
"""Threshold without a cue, where both give a value to an attribute that has one."""

SAFE_MARGIN = 0.10
"""Distance above its threshold from which a score ends a statement silently; what has less is proposed."""

END_CHANCE = 0.5
PROPOSE_CHANCE = 0.25
"""Chances from which a new statement ends an older one, and from which its end is proposed."""

ONE_VALUED = frozenset(
    """lives_in address works_at works_as name phone email manager doctor partner birthday age weight height diet drives
    timezone""".split()
)
"""Attributes that have one value at a time."""


CUES = tuple(cue for cue in ChangeCue if cue is not ChangeCue.NONE)

SIGNS = ("cosine", "overlap", "compatible", "same_person", "same_attribute", "other_value", *CUES)
"""Names of the numbers that `compare` returns, in their order. The weights are fitted to them."""


class Consequence(StrEnum):
    """Consequence of a pair."""

    END = "end"
    PROPOSE = "propose"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Answer for one pair."""

    action: Consequence
    ended_as: EndedAs


def judge(olds: Sequence[Statement], new: Statement) -> Sequence[Verdict]:
    """Decide what a new statement means for each of some older ones; without readings, by the score by hand alone."""
    chances = np.zeros(len(olds), np.float32)
    endings: Sequence[EndedAs] = [EndedAs.SUPERSEDED] * len(olds)
    readings = [old.reading for old in olds if old.reading is not None]
    if new.reading is not None and olds and len(readings) == len(olds):
        around = np.zeros_like(new.reading) if new.around is None else new.around
        signs = np.array([compare(old, new) for old in olds], np.float32)
        chances, endings = rate_endings(np.stack(readings), new.reading, around, signs)
    # "It's the 14th, not the 4th": the 4th never was true.
    is_wrong = ChangeCue.CORRECTION in new.cues and not new.cues & {ChangeCue.END, ChangeCue.FIRM}
    return [
        Verdict(_find_consequence(old, new, float(chance)), EndedAs.WRONG if is_wrong else ended_as)
        for old, chance, ended_as in zip(olds, chances, endings, strict=True)
    ]


def _find_consequence(old: Statement, new: Statement, chance: float) -> Consequence:
    has_evidence = count_evidence(old, new) > 0
    if not has_evidence and chance < PROPOSE_CHANCE:
        return Consequence.NOTHING
    features = pair_features(old, new)
    gate = find_gate(old, new, features)
    score = 0.0 if gate or not has_evidence else compute_score(old, new, features)
    threshold = THRESHOLDS[new.cue]
    if features["same_slot"] and not features["same_value"]:
        threshold = min(threshold, SAME_SLOT)
    if gate in HARD_GATES:
        chance = 0.0
    if score >= threshold + SAFE_MARGIN or chance >= END_CHANCE:
        return Consequence.END
    return Consequence.PROPOSE if score >= threshold or chance >= PROPOSE_CHANCE else Consequence.NOTHING


def pair_features(old: Statement, new: Statement) -> dict[str, float]:
    """Return what is known about a pair, as numbers.

    The cosine is 0 unless both statements have a `vector`.
    """
    return _compare_words(old, new) | _compare_values(old, new)


CHANGES = (ChangeCue.END, ChangeCue.CORRECTION, ChangeCue.FIRM)
"""Cues that leave no doubt that something changed."""


def _compare_words(old: Statement, new: Statement) -> dict[str, float]:
    """Compare what two statements say."""
    shared = old.content & new.content
    old_weight, new_weight = _sum_weights(old.content, old.language), _sum_weights(new.content, new.language)
    shared_weight = _sum_weights(shared, old.language)
    novelty = new.content - frozenset(old.stems)
    hit = new.removed & frozenset(old.stems)
    names = {name for name in old.mentions & new.mentions if name not in old.subjects | new.subjects}
    cosine = _find_cosine(old, new)
    return {
        "cosine": cosine,
        "overlap": shared_weight / max(min(old_weight, new_weight), 1.0),
        "overlap_old": shared_weight / max(old_weight, 1.0),
        "shared": min(shared_weight, 3.0),
        "context": min(_sum_weights((new.context - new.content) & old.content, old.language), 2.0),
        "head_named": float(bool(old.head) and old.head in new.stems),
        "same_head": float(bool(old.head) and old.head == new.head),
        "other_head": float(bool(old.head and new.head and old.head != new.head)),
        "removed_hit": min(_sum_weights(hit, old.language), 2.0),
        "removed_miss": float(bool(new.removed) and not hit),
        "shared_name": float(bool(names)),
        "frame": _share_start(old, new),
        "restated": float(not novelty),
        "negation_differs": float(("negation" in old.traits) != ("negation" in new.traits)),
        "same_person": float(bool((old.subjects & new.subjects) - {USER})),
    }


def _compare_values(old: Statement, new: Statement) -> dict[str, float]:
    """Compare the values that two statements give: attributes, forms, kinds and names."""
    shapes = {name for name in old.shapes.keys() & new.shapes.keys() if name in EXACT_SHAPES}
    others = {name for name in shapes if not old.shapes[name] & new.shapes[name]}
    kinds, single = _compare_kinds(old, new)
    attribute = bool(old.attribute and old.attribute == new.attribute)
    one, other = set(terms(old.value)), set(terms(new.value))
    # "I love a good steak" and "I'm vegetarian now".
    is_other_diet = new.attribute == "diet" and "diet" in kinds["other"] and not old.head
    # "Call me Mr Pym" leaves the name Harold Pym as it is.
    is_kept = attribute and (one <= other or other <= one or (old.attribute == "name" and bool(one & other)))
    # "My boss is Norwegian" names nobody new.
    is_named = " " in new.value or new.value.lower() in load_names()
    is_kept = is_kept or (attribute and old.attribute in PEOPLE_OF_USER and new.cue is ChangeCue.NONE and not is_named)
    return {
        "same_slot": float(attribute),
        # "I quit my job" and "I work at the harbour".
        "removed_slot": float(_is_given_up(old, new)),
        "same_value": float(is_kept),
        "other_value": float((attribute and not is_kept and old.attribute in ONE_VALUED) or is_other_diet),
        "other_slot": float(bool(new.attribute) and not attribute),
        "other_shape": float(bool(others)),
        "other_kind": float(bool(kinds["other"] & single)),
        "same_kind_value": float(bool(kinds["same"])),
        "another_of_many": float(bool(kinds["other"] - load_kinds().single)),
        # "I pay 650 euros of rent" and "The rent is 690 euros".
        "head_revalued": float(bool(others) and bool(new.head) and new.head in old.stems),
    }


def _compare_kinds(old: Statement, new: Statement) -> tuple[Mapping[str, frozenset[str]], frozenset[str]]:
    """Return the kinds of which both name the same value, and another one, and the kinds that have one value."""
    ours, theirs = _group(old.kinds), _group(new.kinds)
    both = ours.keys() & theirs.keys()
    same = frozenset(kind for kind in both if ours[kind] & theirs[kind])
    # "Switched from tea to coffee" names both.
    other = frozenset(kind for kind in both if theirs[kind] - ours[kind])
    return {"same": same, "other": other}, load_kinds().single - _BROAD


def _is_given_up(old: Statement, new: Statement) -> bool:
    words = load_attributes().get(old.attribute, frozenset()) if old.attribute in GIVEN_UP else frozenset()
    return bool(new.removed) and new.removed <= words


GIVEN_UP = frozenset({"works_at", "works_as", "partner", "drives"})
"""Attributes of what one gives up: "I quit my job"."""

_BROAD = frozenset(
    {"diet", "weekday", "daytime", "month", "city", "country", "frequency", "marital", "hot_drink", "milk"}
)
"""Kinds of one value that occur in statements about anything, so their difference says nothing by itself."""


def _group(kinds: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    grouped: dict[str, set[str]] = {}
    for kind, value in kinds:
        grouped.setdefault(kind, set()).add(value)
    return grouped


def _sum_weights(stems: Collection[str], code: str) -> float:
    return sum(weigh(stem, code) for stem in stems)


MAX_FRAME = 4


def _share_start(old: Statement, new: Statement) -> float:
    """Return the share of the first words that two statements have in common: "My favourite tea is …"."""
    one, other = old.text.lower().split()[:MAX_FRAME], new.text.lower().split()[:MAX_FRAME]
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count / MAX_FRAME


def compare(old: Statement, new: Statement) -> list[float]:
    """Return what two statements have in common, and the cues of the new one, as numbers in the order of `SIGNS`."""
    cosine = _find_cosine(old, new)
    least = min(_sum_weights(old.content, old.language), _sum_weights(new.content, new.language))
    same_attribute = bool(old.attribute and old.attribute == new.attribute)
    one, other = set(terms(old.value)), set(terms(new.value))
    # "Call me Mr Pym" leaves the name Harold Pym as it is.
    has_other_value = same_attribute and old.attribute in ONE_VALUED and not (one <= other or other <= one)
    return [
        cosine,
        _sum_weights(old.content & new.content, old.language) / max(least, 1.0),
        float(is_compatible(old, new)),
        float(bool((_find_people(old) & _find_people(new)) - {USER})),
        float(same_attribute),
        float(has_other_value),
        *(float(cue in new.cues) for cue in CUES),
    ]


def is_compatible(old: Statement, new: Statement) -> bool:
    """Return True if two statements can be about the same: nobody's statement ends somebody else's."""
    mine, theirs = _find_people(old), _find_people(new)
    if old.attribute == new.attribute and old.attribute in PEOPLE_OF_USER:
        return True
    if mine & theirs:
        # Two names under one relation are two people: "my friend Ann", "my friend Bob".
        return not (mine - theirs and theirs - mine and USER not in mine & theirs)
    if not mine or not theirs:
        # A thing belongs to whoever speaks of it, so shared words must tell.
        return True
    # "I have a cat" and "My cat died"; "My boyfriend cooks" and "I broke up with my boyfriend".
    return (USER in mine and bool(theirs & old.mentions)) or (USER in theirs and bool(mine & new.mentions))


def _find_people(statement: Statement) -> frozenset[str]:
    return frozenset() if statement.is_thing else statement.subjects


def _find_cosine(old: Statement, new: Statement) -> float:
    return 0.0 if old.vector is None or new.vector is None else float(old.vector @ new.vector)


def rate_nearness(old: Statement, new: Statement) -> float:
    """Rate how likely two statements are about the same: by meaning, shared words and subject."""
    cosine = _find_cosine(old, new)
    return cosine + 0.1 * min(count_evidence(old, new), 3.0) + 0.1 * is_compatible(old, new)


HARD_GATES = {
    *("also", "subject", "restated", "same value", "names nobody", "another one", "one of many", "other head"),
    *("other value", "another of many", "part of it", "same frame"),
}
"""Gates that no chance passes either."""

EVIDENCE = tuple(
    """same_slot other_value removed_slot head_named head_revalued shared_name other_kind removed_hit
    same_kind_value""".split()
)
MUCH_OVERLAP = 0.6
HALF = 0.5
A_THIRD = 0.34


def find_gate(old: Statement, new: Statement, features: Mapping[str, float]) -> str:
    """Return what keeps a pair from ending, whatever its score; empty if nothing does."""
    is_end = ChangeCue.END in new.cues
    is_over = is_end or ChangeCue.CORRECTION in new.cues
    is_firm = ChangeCue.FIRM in new.cues or ChangeCue.SOFT in new.cues
    is_renewed = new.fresh in old.stems or features["same_slot"] or features["other_kind"]
    has_target = any(features[name] for name in ("removed_hit", "same_slot", "other_value", "head_revalued"))
    is_same_topic = features["same_head"] or features["head_named"] or features["head_revalued"]
    gates = {
        "also": ChangeCue.ALSO in new.cues,
        "subject": not is_compatible(old, new),
        "restated": features["restated"]
        and not (is_end or features["negation_differs"] or features["removed_hit"] or features["other_value"])
        # "I go to the gym on Mondays" and "I moved my gym day to Thursdays".
        and not (features["other_shape"] and ChangeCue.FIRM in new.cues),
        "same value": features["same_slot"] and features["same_value"],
        # "My boss is Paul" and "My boss is nice".
        "names nobody": old.attribute in PEOPLE_OF_USER
        and not new.attribute
        and new.cue is ChangeCue.NONE
        and not new.mentions - old.mentions,
        # "My rent is 900 euros" and "My salary is 3,000 euros".
        "other head": features["other_head"] and not has_target and features["overlap"] < MUCH_OVERLAP,
        # "Invoice 1041 is due in May" and "Invoice 1042 is due in June".
        "another one": bool(old.opening & new.opening)
        and len(old.opening - new.opening) == len(new.opening - old.opening) == 1,
        # "I speak French" and "I speak German".
        "one of many": new.cue is ChangeCue.NONE and _is_one_of_many(old, new),
        # "I grow basil on the balcony" and "I grow chillies on the balcony".
        "same frame": new.cue is ChangeCue.NONE and not features["same_slot"] and _is_parallel(old, new),
        # "I live in Rome" and "I live in Oslo for now".
        "for a while": "once" in new.traits and new.cue in (ChangeCue.SOFT, ChangeCue.NONE),
        # "I love coffee" and "I have a new coffee machine".
        "another new thing": new.cue is ChangeCue.SOFT and bool(new.fresh) and not is_renewed,
        # "I work on Mondays" and "I no longer work on Saturdays".
        "other value": is_end and features["other_shape"] and not is_firm,
        # "The standup is at 10:15" and "The standup on Fridays is cancelled".
        "part of it": is_end
        and bool(features["same_head"])
        and "weekday" in new.shapes.keys() - old.shapes.keys()
        and not is_firm,
        # "I go climbing" and "I gave up swimming".
        "another of many": is_over and features["another_of_many"] and not features["same_kind_value"],
        "ends something else": is_over
        and features["removed_miss"]
        and not (features["same_slot"] or features["removed_slot"] or features["head_named"] or is_firm)
        and features["overlap"] < HALF,
        "no shared evidence": not _has_evidence(old, new, features),
        # "I play chess online" and "My chess club meets on Sundays now".
        "another aspect": new.cue is ChangeCue.SOFT
        and features["overlap_old"] < A_THIRD
        and not (has_target or is_renewed or features["other_shape"] or features["same_person"]),
        "no cue": new.cue is ChangeCue.NONE
        and features["frame"] < HALF
        and not (features["same_slot"] or features["other_kind"])
        and not (features["other_shape"] and is_same_topic),
    }
    return next((name for name, is_closed in gates.items() if is_closed), "")


def _is_one_of_many(old: Statement, new: Statement) -> bool:
    is_same_verb = bool(old.many) and old.many == new.many
    return is_same_verb and not (old.content & new.content) - {*terms(old.many)}


LEAST_ALIKE = 0.5


def _is_parallel(old: Statement, new: Statement) -> bool:
    """Return True if two statements are built alike, and do not begin with the same thing ("Standup is at …")."""
    words = old.text.lower().split(), new.text.lower().split()
    is_alike = SequenceMatcher(None, *words, autojunk=False).ratio() >= LEAST_ALIKE
    # "I take 5 mg of ramipril" and "I take 10 mg of ramipril" differ in nothing but numbers.
    differs = any(stem.isalpha() for stem in old.content ^ new.content)
    return is_alike and differs and not (old.opening and old.opening == new.opening)


def count_evidence(old: Statement, new: Statement) -> float:
    """Return how much two statements share that could make them the same fact, before any cosine."""
    shared = _sum_weights((old.content | {old.head}) & (new.content | new.removed | {new.head}) - {""}, old.language)
    people = (_find_people(old) & _find_people(new)) - {USER}
    kinds = {kind for kind, _ in old.kinds} & {kind for kind, _ in new.kinds}
    context = _sum_weights(new.context & old.content, old.language) if new.cue in CHANGES else 0.0
    shapes = {name for name in old.shapes.keys() & new.shapes.keys() if name in EXACT_SHAPES}
    return (
        shared
        + 2.0 * bool(old.attribute and old.attribute == new.attribute)
        + 1.0 * len(people)
        + 1.0 * _is_given_up(old, new)
        + 0.7 * len(kinds)
        + 0.5 * context
        + 0.4 * bool(shapes)
        + 0.5 * bool(old.mentions & new.mentions)
    )


def _has_evidence(old: Statement, new: Statement, features: Mapping[str, float]) -> bool:
    """Return True if two statements share more than their topic."""
    if features["shared"] >= HALF or any(features[name] for name in EVIDENCE):
        return True
    places = {kind for kind, _ in old.kinds} & {kind for kind, _ in new.kinds} & _BROAD
    is_same_one = bool(features["same_person"])
    if ChangeCue.END in new.cues and (new.subjects - {USER}) & old.mentions:
        return True
    has_cue = new.cue not in (ChangeCue.NONE, ChangeCue.ALSO)
    return is_same_one and (
        (has_cue and (bool(places) or features["cosine"] >= HALF)) or features["frame"] >= MUCH_FRAME
    )


MUCH_FRAME = 0.75


def compute_score(old: Statement, new: Statement, features: Mapping[str, float]) -> float:
    """Compute the score by hand: cosine, shared words, and what else the two have in common."""
    score = features["cosine"] + 0.35 * features["overlap"]
    score += 0.10 * features["other_shape"] + 0.10 * features["shared_name"] + 0.12 * (features["shared"] >= 1)
    score += 0.05 * features["context"]
    if features["other_value"]:
        is_sure = not new.traits & {"once", "plan", "retro"}
        # A sentence that says more than the value is less alike.
        score += (0.70 if new.cue in CHANGES else 0.66 if new.cue is ChangeCue.SOFT else 0.60) if is_sure else 0.30
    elif features["same_slot"]:
        score += 0.30
    elif features["head_named"] or features["head_revalued"]:
        score += 0.20
    if features["removed_slot"]:
        score += 0.50
    elif features["other_slot"]:
        score -= 0.20
    if ChangeCue.END in new.cues and (new.subjects - {USER}) & (old.mentions | old.subjects):
        # "Minka has died" ends what was said of Minka.
        score += 0.20
    score += 0.25 * features["other_kind"] + 0.25 * min(features["removed_hit"], 1)
    if features["removed_miss"] and not (features["same_slot"] or features["removed_slot"]):
        score -= 0.10
    return score
