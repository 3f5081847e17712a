"""All languages together: recognise the language of a text, and look words up in the right list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from wellkept.language.entries import Lexicon, load_lexicon, split_words

__all__ = ["ANY", "LEXICONS", "find_language", "index_phrases", "match_phrase"]

LEXICONS = tuple(map(load_lexicon, ("en", "de", "fr", "es", "pt", "it")))

OTHER_WORDS = split_words(
    """
    het een niet van voor zijn maar ook deze dit naar wordt door heeft geen nog wij jij jullie hebben kan als om bij te
    dat met ik je ze aan er wel of over uit op och är inte att det som på av för till jag du vi har den ett med från
    ikke og af at jeg til fra men skal vil være eller blir ble å nie jest się że na do z w i to jak tak ale czy za od
    po dla jego był była są ve bir bu için değil ile da daha çok gibi var yok ben sen nu este și sau care cu pe din mai
    sunt un o să amb però els les és dels aquest ja on ei että se oli joka mutta kun az egy nem hogy meg volt v že jako
    jsou nebo být tidak yang dan di ini itu untuk dengan dari
    """
)
"""Function words of other languages, so that a text in Dutch is not taken for English because of "is" and "in"."""

COGNATES = split_words(
    "is in was had have we up weekend for at man her over under me so all here will best team plan test hand wind man"
)
COGNATE = 0.3
"""English words that other languages write alike, and their weight."""

MIN_SHARE = 1 / 10
"""Share of a text's words that must speak for its language."""

MAX_WORDS = 40
"""Number of words that are looked at."""


def _count_languages() -> dict[str, tuple[tuple[int, float], ...]]:
    """Map each listed word to its languages (by place) and its weight for them: a word of three counts a third."""
    known = ("common", "typical", "question_words", "relations", "dates", "reactions", "light")
    lists = [frozenset[str]().union(*(getattr(lexicon, name) for name in known)) for lexicon in LEXICONS]
    lists.append(OTHER_WORDS)
    found: dict[str, list[int]] = {}
    for place, words in enumerate(lists):
        for word in words:
            found.setdefault(word, []).append(place)
    for place, lexicon in enumerate(LEXICONS):
        for mark in lexicon.marks:
            found.setdefault(mark, []).append(place)
    return {
        word: tuple((place, (COGNATE if word in COGNATES else 1.0) / len(places)) for place in places)
        for word, places in found.items()
    }


_WEIGHTS = _count_languages()
_MARKS = frozenset(mark for lexicon in LEXICONS for mark in lexicon.marks)


def find_language(text: str, words: Sequence[str]) -> Lexicon | None:
    """Return the language of a text by its function words and letters; None if it is unknown.

    `text` and `words` are in lower case.

    >>> [find_language(text, text.split()).code for text in ("the door is open", "die tür ist nicht offen")]
    ['en', 'de']
    >>> find_language("de deur is niet open", "de deur is niet open".split()) is None
    True
    """
    scores = [0.0] * (len(LEXICONS) + 1)
    for word in words[:MAX_WORDS]:
        for place, weight in _WEIGHTS.get(word, ()):
            scores[place] += weight
    if not text.isascii():
        for mark in _MARKS.intersection(text):
            for place, weight in _WEIGHTS[mark]:
                scores[place] += weight
    best = max(scores)
    if best <= 0 or best < MIN_SHARE * min(len(words), MAX_WORDS) or scores.count(best) > 1:
        return None
    place = scores.index(best)
    return LEXICONS[place] if place < len(LEXICONS) else None


def _unite(name: str) -> frozenset[str]:
    return frozenset[str]().union(*(getattr(lexicon, name) for lexicon in LEXICONS))


ANY = Lexicon(
    code="",
    common=_unite("common"),
    negations=_unite("negations"),
    question_words=_unite("question_words"),
    first_person=_unite("first_person"),
    second_person=_unite("second_person"),
    relations=_unite("relations"),
    dates=_unite("dates"),
    reactions=_unite("reactions"),
    light=_unite("light"),
    phrases=_unite("phrases"),
    greetings=_unite("greetings"),
    small_talk=_unite("small_talk") | _unite("greetings"),
    courtesies=_unite("courtesies"),
    fillers=frozenset(),
)
"""All lists in one, for texts too short to tell their language."""

PhraseIndex: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""Words of phrases by their first word, longest first."""


def index_phrases(phrases: Collection[str]) -> PhraseIndex:
    """Index phrases for `match_phrase`."""
    index: dict[str, list[list[str]]] = {}
    for words in sorted((phrase.split() for phrase in phrases), key=len, reverse=True):
        index.setdefault(words[0], []).append(words)
    return index


def match_phrase(words: Sequence[str], position: int, phrases: PhraseIndex) -> int:
    """Return the number of words of the longest phrase that starts at `position`; 0 if none does.

    >>> match_phrase(["oh", "i", "see"], 1, index_phrases(["i see", "i"]))
    2
    """
    for phrase in phrases.get(words[position], ()):
        if words[position : position + len(phrase)] == phrase:
            return len(phrase)
    return 0
