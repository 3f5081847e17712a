# ruff: noqa: E501
"""Features of a pair of statements, from their texts alone: until `wellkept.facts` has its own."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wellkept.policy.text import split_words, terms
from wellkept.providers.minilm import VOCABULARY_FILE, MiniLMEmbedder

CUES = {
    "end": r"no longer|any ?more|gave (?:up|away)|given up|cancel\w*|quit|sold|died|dead|passed away|stopped|finished|done with|is over|are over|closed|"
    r"ended|left|lost|dropped|no more|called off|fell through|gone|history|broke up|split up|divorce\w*|expired|ran out|retired|got rid|unsubscribed|"
    r"resigned|stepped down|paid (?:off|back)|in full|nicht mehr|kein\w* mehr|aufgehört|gekündigt|abgesagt|verkauft|gestorben|abgesetzt|beendet|getrennt|"
    r"ne \w+ plus|n'\w+ plus|fini|terminé|arrêté|résilié|annulé|vendu|mort|quitté|ya no|dejé|dejado|he dejado|cancel\w+|murió|terminad\w+|rompido|roto|baja",
    "correct": r"typo|mis(?:read|typed|spelt|heard|took)|i meant|meant|actually|wrong|oops|sorry|not .{1,30} but|correction|mixed (?:it|them|that) up|"
    r"swapped (?:two )?digits|checked|looked (?:it )?up|\w+, not \w+|not \w+,|vertippt|verlesen|zahlendreher|sondern|faute de frappe|pardon|mal lu|perdona|equivoqué|leí mal|sino",
    "change": r"moved|switch\w*|instead|replac\w+|changed?|became|promoted|swapped|migrat\w+|upgrad\w+|ported|renamed|from .{2,30} to|took over|raised|"
    r"lowered|extended|pushed|slipped|put me on|settled|turned|signed|umgezogen|gewechselt|gesenkt|verlegt|umgestellt|stattdessen|déménagé|changé|passé|basculé|décal\w+|mudado|cambi\w+|migra\w+",
    "soft": r"now|new|again|since|these days|finally|as of|from now on|this month|started|began|bought|found|got|jetzt|neu\w*|seit|inzwischen|maintenant|"
    r"depuis|nouve\w+|neuve|ahora|nuev\w+|desde",
    "also": r"also|too|as well|another|added|besides|on top|in addition|second|further|next to|alongside|auch|zusätzlich|noch|weiteres|aussi|en plus|"
    r"autre|también|además|otra",
    "plan": r"thinking|might|maybe|would|i'd|we'd|one day|someday|dream\w*|offered|wonder\w*|if|consider\w*|evaluat\w+|wants?|like to|going to|will|"
    r"next (?:year|quarter|month)|invited|suggested|recommended|möchte|irgendwann|vielleicht|angeboten|nächstes|aimerais|peut-être|proposé|un jour|gustaría|algún día|ofrecido|probaremos",
    "once": r"today|tonight|yesterday|last night|tomorrow|this (?:week|monday|tuesday|wednesday|thursday|friday|saturday|sunday|one)|for once|"
    r"as an exception|just for|had to|heute|gestern|aujourd'hui|hier|hoy|ayer|anoche",
    "past": r"used to|ago|as a (?:kid|child|student)|back then|when (?:i|we) (?:was|were|still|lived)|before|former|once|originally|at first|beginning|"
    r"in (?:19|20)\d\d|until (?:19|20)\d\d|i remember|my (?:last|first|old)|früher|damals|am anfang|mein letztes|avant|au début|autrefois|antes|al principio|de niño",
    "someone": r"(?:my|our|his|her|mein\w*|unser\w*|meine|mon|ma|notre|mi) (?:\w+[ -])?(?:friend|colleague|neighbour|cousin|uncle|aunt|ex|mum|mother|dad|father|parents|sister|brother|wife|husband|"
    r"flatmate|boss|son|daughter|nephew|niece|mutter|vater|mann|frau|schwester|bruder|mère|père|femme|mari|sœur|frère|madre|padre|mujer|marido|hermana|hermano)",
    "negation": r"not|no|never|n't|nothing|without|kein\w*|nicht|ohne|pas|ne|n'|sans|nada|sin",
}
"""Words of all four languages. A statement of one seldom holds another's."""

_PATTERNS = {
    name: re.compile(r"(?<!\w)(?:" + pattern.replace("n't", "(?:[a-z]+n't)") + r")(?!\w)")
    for name, pattern in CUES.items()
}
SHAPES = {
    "clock": re.compile(
        r"\d{1,2}[:.]\d\d|\d{1,2} ?(?:h|uhr|am|pm)\b|\b(?:at|um|à) (?:\d{1,2}|noon|one|two|three|four|five|six|seven|eight|nine|ten|eleven)\b"
    ),
    "day": re.compile(
        r"\d(?:st|nd|rd|th)\b|\d\.? (?:of )?(?:jan|feb|mar|mär|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])|"
        r"(?:january|february|march|april|may|june|july|august|september|october|november|december) \d"
    ),
    "weekday": re.compile(
        r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|"
        r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábados?|domingos?)\b"
    ),
    "number": re.compile(r"\d+(?:[.,:]\d+)*"),
}
CONTRASTS = [
    ("work office company job client clients", "home private family own"),
    ("test staging", "production prod"),
    ("weekday weekdays week woche semaine", "weekend weekends wochenende saturday sunday"),
    ("morning mornings morgens breakfast", "evening evenings night abends noon afternoon"),
    ("summer", "winter"),
    ("frontend", "backend"),
    ("left", "right"),
    ("upstairs", "downstairs"),
    ("mother mum", "father dad"),
    ("free", "business"),
]
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w'’-]+")
_EMBEDDER = MiniLMEmbedder()
WORST_RANK = 30_000
FIRST_WORD = 1996
"""Line of "the" in the vocabulary of the encoder, whose words are in the order of their frequency from there on."""


@cache
def _ranks() -> dict[str, int]:
    from importlib import resources

    pieces = (resources.files("wellkept.providers") / VOCABULARY_FILE).read_text("utf-8").split("\n")
    return {piece: max(1, number - FIRST_WORD) for number, piece in enumerate(pieces)}


@cache
def weigh(word: str) -> float:
    """Return the rarity of a word, from 0 to 1."""
    return math.log(_ranks().get(word, WORST_RANK)) / math.log(WORST_RANK)


@cache
def embed(text: str) -> NDArray[np.float32]:
    """Embed a text, or a single word."""
    return _EMBEDDER.embed([text])[0]


def _read(text: str) -> dict[str, float]:
    """Return the stems of a text with the rarity of their words."""
    found: dict[str, float] = {}
    for word in split_words(text):
        for stem in terms(word):
            found[stem] = max(found.get(stem, 0.0), weigh(word.lower()))
    return found


def _bridge(old: set[str], new: set[str]) -> float:
    """Return how near the nearest words are that only one of two statements has: steak and meat."""
    if not old or not new:
        return 0.0
    return float(max(embed(one) @ embed(other) for one in old for other in new))


def pair_features(old: str, new: str) -> dict[str, float]:
    """Return what is known about a pair, as numbers.

    The cosine is a topic, the rest tells whether it is the same fact.
    """
    low_old, low_new = old.lower().replace("’", "'"), new.lower().replace("’", "'")
    ours, theirs = _read(low_old), _read(low_new)
    shared = ours.keys() & theirs.keys()
    weight = sum(ours[stem] for stem in shared)
    reach_old, reach_new = weight / max(sum(ours.values()), 1.0), weight / max(sum(theirs.values()), 1.0)
    cosine = float(embed(old) @ embed(new))
    cues = {name: bool(pattern.search(low_new)) for name, pattern in _PATTERNS.items()}
    before = {name: bool(pattern.search(low_old)) for name, pattern in _PATTERNS.items()}
    changes = cues["end"] or cues["correct"] or cues["change"]
    old_words = {word for word in split_words(low_old) if terms(word) and not set(terms(word)) & shared}
    new_words = {word for word in split_words(low_new) if terms(word) and not set(terms(word)) & shared}
    only_old, only_new = " ".join(sorted(old_words)), " ".join(sorted(new_words))
    names_old, names_new = set(_NAME.findall(old)), set(_NAME.findall(new))
    found = {
        "cosine": cosine,
        "cosine_high": max(0.0, cosine - 0.5),
        "cosine_low": max(0.0, 0.3 - cosine),
        "reach_old": reach_old,
        "reach_new": reach_new,
        "shared": min(weight, 2.0),
        "rarest": max((ours[stem] for stem in shared), default=0.0),
        "none_shared": float(not shared),
        "rest_cosine": float(embed(only_old) @ embed(only_new)) if only_old and only_new else 0.0,
        "bridge": _bridge(old_words, new_words),
        "restated": float(not new_words),
        "same_name": float(bool(names_old & names_new)),
        "other_name": float(bool(names_new - names_old) and bool(names_old - names_new)),
        "same_start": float(low_old.split()[:2] == low_new.split()[:2]),
        "change_cosine": changes * cosine,
        "change_shared": changes * min(weight, 2.0),
        "plain_cosine": (not changes) * cosine,
        "plain_shared": (not changes) * min(weight, 2.0),
        "someone_new": float(cues["someone"] and not before["someone"]),
        "someone_old": float(before["someone"]),
        "old_past": float(before["past"]),
        "contrast": float(any(_is_contrast(old_words, new_words, pair) for pair in CONTRASTS)),
    }
    for name in ("end", "correct", "change", "soft", "also", "plan", "once", "past"):
        found[f"cue_{name}"] = float(cues[name])
    found["negation_differs"] = float(cues["negation"] != before["negation"])
    found["no_cue"] = float(not any(cues[name] for name in ("end", "correct", "change", "soft")))
    for name, pattern in SHAPES.items():
        one, other = set(pattern.findall(low_old)), set(pattern.findall(low_new))
        found[f"other_{name}"] = float(bool(one and other - one))
        found[f"same_{name}"] = float(bool(one & other))
    return found


def _is_contrast(old: set[str], new: set[str], pair: tuple[str, str]) -> bool:
    one, other = (set(words.split()) for words in pair)
    return bool((one & old and other & new) or (other & old and one & new))
