"""Detect near-duplicate memories without a model.

Texts are compared as bags of stemmed words. Similarity alone is not enough: "port 5432" and "port 5433" differ in one
digit but state different facts. A near-duplicate must also agree in everything that carries a fact (numbers, codes,
days, names, negation, tense, "only", who does what to whom), and only one of the texts may have words that the other
lacks.

Those rules are English. In another language that the lexicon knows, a near-duplicate has the same words in the same
order, apart from articles and particles; in any other, exactly the same words.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wellkept.language.languages import LEXICONS, find_language
from wellkept.language.text import fold, terms
from wellkept.text_cache import cache_text

ENGLISH = LEXICONS[0]
_SOURCE = tomllib.loads(Path(__file__).with_name("duplicates.toml").read_text("utf-8"))


def _group_words(groups: str) -> Mapping[str, str]:
    """Map each word to the first word of its group; groups are separated by commas."""
    word_groups = [group.split() for group in groups.split(",")]
    return {word: group[0] for group in word_groups for word in group}


SURE_NEGATIONS = ENGLISH.negations - {"zero", "0"} | {"stopped", "refuses"}
"""Words that negate a statement; a number does not."""

FACTS = _group_words(_SOURCE["facts"])
"""Words that are facts by themselves, in groups; texts with different ones do not say the same."""

ALIASES = _group_words(_SOURCE["aliases"])
FILLERS = frozenset(_SOURCE["fillers"].split())
"""Stems that do not change the meaning of a text."""

DIRECTIONS = frozenset("over than to from before after by into instead but while whereas".split())
"""Words whose left and right side cannot be exchanged."""

DUPLICATE_THRESHOLD = 0.8
"""Minimum similarity of duplicates; below it one text says much more, even if the facts agree."""

WORDS_WEIGHT = 0.7
"""Share of whole words in the similarity; the rest is character n-grams, which tolerate spelling variants."""

GRAM = 3
"""Length of the character n-grams."""

MIN_TYPO_CHARS = 6
"""Minimum length of a word that may miss a letter; a word with another letter must be longer."""

MAX_TYPO_WORDS = 8
"""Maximum number of differing words checked for typos; texts with more differ by more than spelling."""

_PIECE = re.compile(r"[$€£¥%]|[^\W_]+(?:['’.,:/@_-][^\W_]+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_HALF_DAY = re.compile(r"(?<=\d)\W+(?=[ap]m\b)", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?(am|pm)?")
_LISTING = re.compile(r"\b(?:and|or)\b|,")
_SUBWORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Features of a text that comparisons use, computed once."""

    text: str  # folded, with collapsed white space
    spoken: tuple[str, ...]  # all its words and numbers in order
    tokens: tuple[str, ...]  # distinct words and facts in order
    words: frozenset[str]
    facts: frozenset[str]
    names: frozenset[str]  # capitalised words
    negations: int
    genders: frozenset[str]
    sides: Mapping[str, tuple[frozenset[str], frozenset[str]]]  # by direction word: the words before and after it
    grams: frozenset[str]


def compute_similarity(a: str, b: str) -> float:
    """Return the similarity of two texts from 0 to 1, independent of word order.

    >>> compute_similarity("The team meets on Mondays", "On Mondays the team meets")
    1.0
    """
    one, other = take_fingerprint(a), take_fingerprint(b)
    if one.text == other.text:
        return 1.0
    if not one.tokens or not other.tokens:
        return 0.0
    grams = _dice(one.grams, other.grams)
    return WORDS_WEIGHT * _dice(one.words | one.facts, other.words | other.facts) + (1 - WORDS_WEIGHT) * grams


def is_near_duplicate(a: str, b: str) -> bool:
    """Return True if two texts say the same: similar by `DUPLICATE_THRESHOLD`, and every fact agrees.

    >>> is_near_duplicate("User prefers dark mode", "The user prefers dark mode.")
    True
    >>> is_near_duplicate("The port is 5432", "The port is 5433")
    False
    """
    one, other = take_fingerprint(a), take_fingerprint(b)
    if one.text == other.text:
        return True
    lexicon = find_language(f"{one.text} {other.text}", [*one.spoken, *other.spoken])
    if lexicon is not ENGLISH:
        return _has_same_words(one, other, frozenset() if lexicon is None else lexicon.fillers)
    if one.facts != other.facts or one.negations != other.negations or _relations_differ(one, other):
        return False
    only_one, only_other = _unmatched(one, other)
    if (only_one and only_other) or (only_one & one.names) or (only_other & other.names):
        return False
    if _is_swapped(one, other):
        return False
    if not (only_one or only_other):
        return bool(one.tokens)
    return compute_similarity(a, b) >= DUPLICATE_THRESHOLD


def _has_same_words(one: Fingerprint, other: Fingerprint, fillers: frozenset[str]) -> bool:
    """Return True if two texts consist of the same words in the same order, apart from fillers."""
    words, others = ([word for word in each.spoken if word not in fillers] for each in (one, other))
    return words == others and bool(words)


def _is_swapped(one: Fingerprint, other: Fingerprint) -> bool:
    """Return True if things changed sides, as in "tabs over spaces" and "spaces over tabs", or names their order."""
    for direction in one.sides.keys() & other.sides.keys():
        (before, after), (other_before, other_after) = one.sides[direction], other.sides[direction]
        if before & other_after and after & other_before:
            return True
    shared = one.names & other.names
    if len(shared) < 2 or _LISTING.search(one.text) or _LISTING.search(other.text):
        return False
    order = [token for token in one.tokens if token in shared]
    return order != [token for token in other.tokens if token in shared] and one.tokens != other.tokens


def _unmatched(one: Fingerprint, other: Fingerprint) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that only one text has, ignoring misspellings of each other."""
    only_one, only_other = one.words - other.words, other.words - one.words
    if 0 < len(only_one) <= MAX_TYPO_WORDS and 0 < len(only_other) <= MAX_TYPO_WORDS:
        typos = {(x, y) for x in only_one for y in only_other if _is_typo(x, y)}
        only_one -= {x for x, _ in typos}
        only_other -= {y for _, y in typos}
    return only_one, only_other


def _is_typo(a: str, b: str) -> bool:
    """Return True if the words differ by one missing letter, or by one other letter in a long word.

    >>> _is_typo("favourit", "favorit"), _is_typo("organis", "organiz"), _is_typo("horse", "house")
    (True, True, False)
    """
    short, long = sorted((a, b), key=len)
    if len(long) < MIN_TYPO_CHARS or short[0] != long[0] or len(long) - len(short) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if len(short) == len(long):
        return len(long) > MIN_TYPO_CHARS and short[start + 1 :] == long[start + 1 :]
    return short[start:] == long[start + 1 :]


def _relations_differ(one: Fingerprint, other: Fingerprint) -> bool:
    """Return True if pronouns or direction words differ, such as he/she or from/to."""
    if one.genders and other.genders and one.genders != other.genders:
        return True
    return bool(one.sides.keys() - other.sides.keys() and other.sides.keys() - one.sides.keys())


def _dice(a: frozenset[str], b: frozenset[str]) -> float:
    """Compute the Dice coefficient of two sets."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


_GENDERS = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "hers": "she"}


# Cached because each text is compared with many others.
@cache_text(1024)
def take_fingerprint(text: str) -> Fingerprint:
    """Compute the fingerprint of a text.

    >>> sorted(take_fingerprint("The team meets on Mondays at 3 pm").facts)
    ['15:00', 'monday']
    """
    found: dict[str, bool] = {}  # the tokens; True for facts
    names, genders, negations = set[str](), set[str](), 0
    cuts: dict[str, int] = {}  # number of tokens before each direction word
    for spelled, is_value in _list_words(text):
        word = fold(spelled)
        if is_value:
            found[_normalize(word)] = True
        elif word in SURE_NEGATIONS:
            negations += 1
        else:
            genders |= {_GENDERS[word]} if word in _GENDERS else set()
            if word in DIRECTIONS:
                cuts.setdefault(word, len(found))
            if word in FACTS or spelled == "May":
                found[FACTS.get(word, word)] = True
            if word not in DIRECTIONS and word not in FACTS:
                stems = [stem for term in terms(word) if (stem := ALIASES.get(term, term)) not in FILLERS]
                found |= {stem: found.get(stem, False) for stem in stems}
                names |= set(stems) if spelled[0].isupper() else set()
    folded, tokens = " ".join(fold(text).split()), tuple(found)
    padded = [f" {token} " for token in tokens]
    return Fingerprint(
        text=folded,
        spoken=tuple(_SUBWORD.findall(folded.replace("’", "'"))),
        tokens=tokens,
        words=frozenset(token for token, is_fact in found.items() if not is_fact),
        facts=frozenset(token for token, is_fact in found.items() if is_fact),
        names=frozenset(names),
        negations=negations,
        genders=frozenset(genders),
        sides={word: (frozenset(tokens[:cut]), frozenset(tokens[cut:])) for word, cut in cuts.items()},
        grams=frozenset(each[start : start + GRAM] for each in padded for start in range(len(each) - GRAM + 1)),
    )


def _list_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a text as they are spelled, and True for numbers and codes."""
    plain = unicodedata.normalize("NFC", text).replace("’", "'")
    for piece in _PIECE.findall(_HALF_DAY.sub("", plain)):
        is_code = any(character.isdigit() for character in piece) or "@" in piece or "/" in piece
        if is_code and fold(piece) not in ALIASES:
            yield piece, True
        elif fold(piece) in FACTS or fold(piece) in SURE_NEGATIONS:
            yield piece, False
        else:
            yield from ((word, False) for word in _SUBWORD.findall(piece))


def _normalize(piece: str) -> str:
    """Normalise a number or code; times of day become 24-hour times.

    >>> _normalize("5,000"), _normalize("3pm"), _normalize("15:00"), _normalize("us-east-1"), _normalize("30k")
    ('5000', '15:00', '15:00', 'us-east-1', '30000')
    """
    if _THOUSANDS.fullmatch(piece):
        return piece.replace(",", "")
    clock = _CLOCK.fullmatch(piece)
    if clock and (clock[3] or ":" in piece):
        hour = int(clock[1]) % 12 + 12 * (clock[3] == "pm") if clock[3] else int(clock[1])
        return f"{hour}:{clock[2] or '00'}"
    if piece[:-1].isdigit() and piece[-1] == "k":
        return piece[:-1] + "000"
    return FACTS.get(piece, piece)
