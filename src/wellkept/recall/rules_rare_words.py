"""Rare words of a question: identifiers, error codes, numbers and names. Who alone holds one comes first.

No ranking by likeness can be trusted with them: "ERR-4012-B" is like "ERR-4012-C", and only one of them was asked for.
So this rule stands beside the ranking, and follows from the question and the texts alone:

1. `find_rare_words` reads the rare words of a question by their form.
2. A source looks for the records that may hold one by its index (`nominate`), reads their texts, and keeps those that
   hold it exactly (`find_held_words`): one record, or a few for an identifier.
3. What merges the sources rates these with `raise_relevance` and puts them first (`recall.rules_ranking`).

An ordinary word is not rare, however few records of a small store hold it: "style" must not outrank what is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wellkept.language import languages
from wellkept.language.text import NOUN_LANGUAGE_WORDS, UNSPACED, fold, terms
from wellkept.model import HeldWord
from wellkept.text_cache import cache_text

if TYPE_CHECKING:
    from wellkept.recall.rules_features import Evidence, Numbers

FEW = 5
"""Distinct texts that may hold an identifier for all of them to come first; any other rare word must be held by one."""

MAX_READ = 64
"""Records whose texts are read to find those that hold a word."""

MAX_WORDS = 8
"""Rare words of a question that count; a pasted log has more."""

MAX_CHARS = 400
"""Characters of a question in which rare words are looked for."""

LARGE_STORE = 100
"""Records from which a word without the form of an identifier or a name is rare if only one of them holds it."""

RELEVANCE = 0.6
RELEVANCE_OF_NUMBERED = 0.9
"""Least relevance of a record that holds a rare word of the question; the second if the word has a digit.

Of those that alone held a name of the question, about every second answered it in conversations (REALTALK, LoCoMo).
"""

# Vowel signs of Indic scripts and points of Hebrew and Arabic belong to the word, though they are no letters.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u200c\u200d"
_WORD = rf"(?:[^\W{UNSPACED}]|[{_SIGNS}])+"
_JOINERS = r"-./:@+&#\\'’"
_TOKEN = re.compile(rf"{_WORD}(?:[{_JOINERS}]{{1,3}}{_WORD})*")
_POSSESSIVE = re.compile(r"['’]s$")
_QUANTITY = re.compile(
    r"(?i:\d{1,4}(?:st|nd|rd|th|er|e|è|º|ª|s|[ap]m|h|min|sec|k|m|x|kg|g|km|cm|mm|mi|lbs?|oz|ft|mb|gb|tb|kb|ms|px|d|w|y)"
    r"|\d{1,2}[:/h-]\d{1,2})"
)
_ROUND_OR_YEAR = re.compile(r"[1-9]0{1,3}|(?:19|20)\d\d")
_DIGIT = re.compile(r"\d")
_SPACED_IDENTIFIER = re.compile(r"(?<![\w-])(?:[A-Z0-9-]{2,12} ){1,7}(?=[A-Z-]*\d)[A-Z0-9-]{1,12}(?![\w-])")
"""An identifier that is written with spaces, such as the number plate "FF-MK 1907"."""

_SENTENCE_START = re.compile(r"(?:^|[.?!:;\n(\"“„«])\s*$")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}々]{{2,20}}")
_CALLED = re.compile(
    r"([\u4e00-\u9fff々]{2,6}|[\u30a1-\u30fa・ー]{2,16})(?:さん|さま|様|くん|君|ちゃん|氏|先生|部長|課長|社長|女士|小姐|经理)"
    r"|([\uac00-\ud7af]{2,5}?)(?: ?(?:씨|님))"
)
_SURNAMES = (
    "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧程曹袁邓鄧许許傅沈曾彭吕"
    "苏蘇卢盧蒋蔣蔡贾丁魏薛叶葉阎余潘杜戴夏钟鍾汪田任姜范方石姚谭廖邹熊金陆陸郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤"
)
_FULL_NAME = re.compile(rf"(?=([{_SURNAMES}][\u4e00-\u9fff]{{2}}))")
"""A Chinese family name and two more characters, wherever one stands."""

_DETERMINED = re.compile(
    r"\b(?:d(?:er|ie|as|en|em|es)|(?:k?ein|[mds]ein|ihr|unser|eu(?:er|r)|dies|jed|jen|welch|manch|viel|alle)(?:e[nmrs]?)?"
    r"|zu[mr]|beim|[ia]m|vom|[ia]ns|\d+)(?:\s+[a-zäöüß]+e[nmrs]?)?\s+$",
    re.IGNORECASE,
)
"""The end of a German text after which a word with a capital is an ordinary noun."""

MIN_ACRONYM = 4
"""Letters from which a word in capitals is a rare one (EPIPE) and not a common abbreviation (TV, USA)."""

MIN_COMPOUND = 16
"""Letters from which a German noun counts as a compound that hardly anybody else uses."""


class RareWord(NamedTuple):
    """Rare word of a question."""

    text: str  # as the question writes it
    is_identifier: bool = False  # a few records may hold it, not only one
    is_maybe_name: bool = False  # rare only if the record that holds it writes it as a name
    least: int = 0  # records that there must be
    is_doubtful: bool = False  # counts only if one record holds all such words of the question
    parts: tuple[RareWord, ...] = ()  # names in a full name, which count if no record holds all of it


# Cached because every source asks for those of the same question.
@cache_text(64)
def find_rare_words(question: str) -> Sequence[RareWord]:
    """Return the rare words of a question, in its order.

    >>> [word.text for word in find_rare_words("What happened with ERR-4012-B on 10.0.0.7, and what did Ann Lee say?")]
    ['ERR-4012-B', '10.0.0.7', 'Ann Lee']
    >>> {word.least for word in find_rare_words("Which code style do I prefer, and how many of the 12 in 2024?")}
    {100}
    """
    text = question[:MAX_CHARS].strip()
    tokens = [(match.start(), _trim(match[0])) for match in _TOKEN.finditer(text)]
    found = {word.text: word for word in _find_all(text, tokens)}
    return tuple(found.values())[:MAX_WORDS]


def _find_all(text: str, tokens: Sequence[tuple[int, str]]) -> Iterator[RareWord]:
    bare = text.strip(" \t?!.,;:()\"'“”„«»¿¡？！。")
    is_lone = len(tokens) == 1 and tokens[0][1] == bare
    names, others = _find_names(text, tokens), list[RareWord]()
    is_shouted = text.isupper() and len(tokens) > 3
    for start, token in tokens:
        is_word = token.isalpha()
        before = text[max(0, start - 1) : start]
        is_handle = before == "@" and len(token) > 1
        if is_handle or (not is_word and _is_identifier(token, is_marked=is_lone or before == "#")):
            yield RareWord(token, is_identifier=True)
        elif start in names:
            yield names[start]
        elif not is_shouted and _is_coined(token):
            yield RareWord(token, is_identifier=token.isupper() and "-" in token)
        elif is_lone:
            yield RareWord(token, least=LARGE_STORE)
        elif is_word and len(token) > 3 and token.islower() and token not in _ordinary_words():
            others.append(RareWord(token, is_maybe_name=True, least=LARGE_STORE))
        elif len(token) > 2 and _has_no_case(token) and token not in _ordinary_words():
            others.append(RareWord(token, is_maybe_name=True, is_doubtful=True, least=LARGE_STORE))
    if not text.isascii():
        for match in _CALLED.finditer(text):
            yield RareWord(match[1] or match[2])
        others += [
            RareWord(match[1], is_maybe_name=True, is_doubtful=True, least=LARGE_STORE)
            for match in _FULL_NAME.finditer(text)
        ]
        if not tokens and _UNSPACED_RUN.fullmatch(bare):
            yield RareWord(bare, least=LARGE_STORE)
    yield from (RareWord(run, is_identifier=True) for run in _SPACED_IDENTIFIER.findall(text))
    yield from others


def _trim(token: str) -> str:
    return _POSSESSIVE.sub("", token)


def _is_identifier(token: str, *, is_marked: bool) -> bool:
    """Return True for what is written like an identifier and not like an amount, a time of day, a year or a word."""
    if _DIGIT.search(token):
        if is_marked:
            return True
        if token.isdecimal():
            return len(token) >= 3 and not _ROUND_OR_YEAR.fullmatch(token)
        return not _QUANTITY.fullmatch(token)
    if "@" in token or "_" in token.strip("_") or "::" in token or token.count("/") > 1 or "\\" in token:
        return True
    pieces = token.split(".")
    return len(pieces) > 1 and all(len(piece) > 1 for piece in pieces) and not pieces[-1][0].isupper()


def _is_coined(token: str) -> bool:
    """Return True for a word with a capital inside (getUserById) or of capitals alone (EPIPE)."""
    if token.islower():
        return False
    is_mixed = any(first.islower() and second.isupper() for first, second in pairwise(token))
    return is_mixed or (len(token) >= MIN_ACRONYM and token.isupper())


def _find_names(text: str, tokens: Sequence[tuple[int, str]]) -> dict[int, RareWord]:
    """Return the names by where they start: words with a capital inside a sentence, and full names as one.

    German writes every noun with a capital, so there only full names and long compounds count.
    """
    has_capital_nouns = not NOUN_LANGUAGE_WORDS.isdisjoint(text.lower().split())
    runs = list[list[tuple[int, str]]]()
    for start, token in tokens:
        if not token[:1].isupper():
            continue
        lowered = token.lower().replace("’", "'")
        if lowered in _ordinary_words():
            if lowered in languages.ANY.common and token[0] != "I" and not _SENTENCE_START.search(text[:start]):
                # A title, in which every word has a capital.
                return {}
            continue
        if token.isupper() and len(token) < MIN_ACRONYM:
            continue
        last = runs[-1][-1] if runs else None
        if last is not None and text[last[0] + len(last[1]) : start] == " ":
            runs[-1].append((start, token))
        else:
            runs.append([(start, token)])
    found: dict[int, RareWord] = {}
    for run in runs:
        first, end = run[0][0], run[-1][0] + len(run[-1][1])
        if len(run) > 1:
            parts = () if has_capital_nouns else tuple(RareWord(token) for _, token in run)
            found[first] = RareWord(text[first:end], parts=parts)
            # Its other words are no words of their own.
            found |= {start: found[first] for start, _ in run[1:]}
        elif has_capital_nouns:
            if len(run[0][1]) >= MIN_COMPOUND:
                found[first] = RareWord(run[0][1])
            elif not _SENTENCE_START.search(text[:first]) and not _DETERMINED.search(text[:first]):
                found[first] = RareWord(run[0][1], is_maybe_name=True, is_doubtful=True, least=LARGE_STORE)
        elif not _SENTENCE_START.search(text[:first]) or text[end : end + 2] in ("'s", "’s"):
            found[first] = RareWord(run[0][1])
    return found


@cache
def _ordinary_words() -> frozenset[str]:
    known = languages.ANY
    lists = (known.common, known.light, known.dates, known.reactions, known.relations, known.question_words)
    return frozenset[str]().union(*lists, known.courtesies, ("i'm", "i'd", "i'll", "i've"))


def nominate(
    words: Sequence[RareWord], terms_looked_up: Sequence[str], evidence: Evidence, total: int
) -> dict[RareWord, Sequence[int] | None]:
    """Return the numbers of the records that may hold each rare word and each of its parts, by the terms they hold.

    None stands for an identifier whose terms are too common one by one. `total` is the number of all records.
    """
    places = {term: place for place, term in enumerate(terms_looked_up)}
    found: dict[RareWord, Sequence[int] | None] = {}
    for word in chain(words, *(each.parts for each in words)):
        wanted = [places.get(term, -1) for term in dict.fromkeys(terms(word.text))]
        if not wanted or min(wanted) < 0 or total < word.least:
            continue
        rows = _intersect([evidence.occurrences[place][0] for place in wanted])
        if evidence.allowed is not None:
            rows = rows[evidence.allowed[rows]]
        most = MAX_READ if word.is_identifier or len(wanted) > 1 else 1 if word.is_maybe_name else FEW
        if len(rows) <= most:
            found[word] = evidence.seqs[rows].tolist()
        elif (word.is_identifier or len(wanted) > 1) and fold(word.text) not in places:
            # "8.8.8" is in one memory, and "8" in hundreds.
            found[word] = None
    return found


def _intersect(rows: Sequence[Numbers]) -> Numbers:
    if len(rows) == 1:
        return rows[0]
    fewest, *others = sorted(rows, key=len)
    for other in others:
        fewest = fewest[np.isin(fewest, other)]
    return fewest


def find_held_words(
    words: Sequence[RareWord], nominated: Mapping[RareWord, Collection[int]], texts: Mapping[int, str]
) -> dict[int, list[HeldWord]]:
    """Return the rare words that each record holds alone, or with few others.

    >>> words = find_rare_words("Who is Ann Lee?")
    >>> find_held_words(words, dict.fromkeys(words, [1, 2]), {1: "Ann Lee is a vet", 2: "Ann Lees called"})
    {1: [HeldWord(word='Ann Lee', holders=1)]}
    """
    found: dict[int, list[HeldWord]] = {}

    def find(word: RareWord) -> Sequence[int]:
        return find_holders(word, {key: texts[key] for key in nominated.get(word, ()) if key in texts})

    doubtful = {key for word in words if word.is_doubtful for key in find(word)}

    def add(word: RareWord) -> bool:
        holders = find(word)
        if word.is_doubtful and len(doubtful) > 1:
            return False
        for key in holders:
            found.setdefault(key, []).append(HeldWord(word.text, len(holders)))
        return bool(holders)

    for word in words:
        if not add(word):
            for part in word.parts:
                add(part)
    return found


def find_holders(word: RareWord, texts: Mapping[int, str]) -> Sequence[int]:
    """Return the keys of the texts that hold a word exactly, or nothing if they are too many.

    If some texts write it as the question does, those that write it otherwise do not count.

    >>> find_holders(RareWord("ab-12", is_identifier=True), {1: "AB-12 failed", 2: "see ab-12.", 3: "ab-12-c"})
    [2]
    >>> find_holders(RareWord("Ann"), {1: "Ann called", 2: "asked Ann"})
    []
    """
    levels = {key: _rate_holding(word.text, text) for key, text in texts.items()}
    best = max(levels.values(), default=0)
    if not best:
        return []
    held = [key for key, level in levels.items() if level == best]
    if len({" ".join(fold(texts[key]).split()) for key in held}) > (FEW if word.is_identifier else 1):
        return []
    if word.is_maybe_name and not _is_written_as_name(word.text, texts[held[0]]):
        return []
    return held


def raise_relevance(relevance: float, held: Sequence[HeldWord]) -> float:
    """Return the relevance of a record that holds these rare words of the question.

    >>> raise_relevance(0.1, [HeldWord("ERR-4012-B", 1)]), raise_relevance(0.7, [HeldWord("Ann Lee", 1)])
    (0.9, 0.7)
    """
    is_numbered = any(_DIGIT.search(each.word) for each in held)
    return max(relevance, RELEVANCE_OF_NUMBERED if is_numbered else RELEVANCE) if held else relevance


def _rate_holding(word: str, text: str) -> int:
    """Return how exactly a text holds a word: 3 as written, 2 in another case, 1 as part of a longer one, 0 not."""
    if _find_place(word, text, is_whole=True):
        return 3
    folded_word, folded = fold(word), fold(text)
    if _find_place(folded_word, folded, is_whole=True):
        return 2
    return int(_find_place(folded_word, folded, is_whole=False))


def _find_place(word: str, text: str, *, is_whole: bool) -> bool:
    is_spaced = not _UNSPACED_RUN.search(word)
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not is_spaced or not (
            _is_joined(text[end : end + 2], is_whole) or _is_joined(text[max(0, at - 2) : at][::-1], is_whole)
        ):
            return True
        at = text.find(word, at + 1)
    return False


def _is_joined(beside: str, is_whole: bool) -> bool:
    """Return True if the one or two characters beside a word, nearest first, continue it."""
    if not beside:
        return False
    near, far = beside[0], beside[1:]
    if _is_word_char(near):
        return True
    return is_whole and near in "-./:@+&#\\" and bool(far) and _is_word_char(far)


def _is_word_char(char: str) -> bool:
    is_part = char.isalnum() or char == "_" or unicodedata.category(char) in ("Mn", "Mc")
    return is_part and not _UNSPACED_RUN.fullmatch(char * 2)


def _has_no_case(word: str) -> bool:
    """Return True for a word of a script without capitals, such as Arabic, Hebrew or Hindi."""
    return not word.isascii() and word.lower() == word.upper() and not any(map(str.isdecimal, word))


def _is_written_as_name(word: str, text: str) -> bool:
    """Return True if a text writes a word with a capital inside a sentence, and few others."""
    if _has_no_case(word):
        return True
    capital = word[0].upper() + word[1:]
    spelled = text.split()
    at = text.find(capital)
    if at < 0 or _SENTENCE_START.search(text[:at]):
        return False
    if not NOUN_LANGUAGE_WORDS.isdisjoint(text.lower().split()):
        return not _DETERMINED.search(text[:at])
    return 2 * sum(each[:1].isupper() for each in spelled) <= len(spelled)
