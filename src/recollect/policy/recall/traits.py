"""Traits of a memory's text that recall goes by, stored among the terms of its index entry.

A trait is a term with a colon, which no word of a text has, so it needs no column of its own and no search for words
finds it. Records indexed before a trait existed lack it until `reembed` rewrites their entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recollect.policy.lexicon.recall_words import NUMBER_WORDS, SELF_WORDS, TIME_WORDS
from recollect.policy.text import join_terms, split_words, terms

QUESTION = "trait:question"
"""Nothing but questions, without a number or a date: such a text states nothing."""

ASKING = "trait:asking"
"""At least half of it is questions."""

SELF = "trait:self"
"""Somebody speaks of themselves."""

TIME = "trait:time"
"""Dates an event."""

NUMBER = "trait:number"
"""Holds a number."""

ANSWER = "trait:answer"
"""Reads like the answer of an assistant: lists, headings, offers of help."""

SPOKEN = "trait:spoken"
"""Begins with the name of its speaker, as in "Ann: hello"."""

FIXED = (QUESTION, ASKING, SELF, TIME, NUMBER, ANSWER, SPOKEN)
"""Traits of a text alone, in the order of the bits in `Evidence.traits`."""

HALF = 0.5

MAX_ANSWER_CHARS = 400
"""Length above which a text with a list or a heading reads like an answer."""

_SPEAKER = re.compile(r"\s*([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=[^\s.!?。！？])|\n+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGIT = re.compile(r"\d")
_LIST = re.compile(r"^\s*(?:[-*•] |\d{1,2}[.)] |#{1,4} |\*\*)", re.MULTILINE)
_OFFER = re.compile(
    r"(?:sure|certainly|of course|absolutely|great (?:question|idea|choice)|here(?:'s| is| are)\b|i'm (?:sorry|glad)"
    r"|you're welcome|as an ai|congratulations|natürlich|gerne|gern geschehen|bien sûr|avec plaisir|voici|claro"
    r"|por supuesto|aquí (?:tienes|está)|certo|certamente|ecco|com certeza|aqui está)"
)


def index_terms(text: str) -> list[str]:
    """Return the terms of a memory's index entry: its words, then its traits.

    >>> index_terms("Ann: I moved in May 2021")[-5:]
    ['trait:self', 'trait:time', 'trait:number', 'trait:spoken', 'by:ann']
    >>> index_terms("What is my dog's name?")[-2:]
    ['trait:asking', 'trait:self']
    """
    words = split_words(text)
    return [*join_terms(words), *_find_traits(text, frozenset(words))]


def speaker_trait(term: str) -> str:
    """Return the trait of texts whose speaker's name contains a term."""
    return f"by:{term}"


def find_name(text: str) -> str:
    """Return the name of the speaker that a text begins with, if any.

    >>> find_name("Ann Lee: hello"), find_name("note: call back")
    ('Ann Lee', '')
    """
    match = _SPEAKER.match(text)
    return match[1] if match and all(word[0].isupper() for word in match[1].split()) else ""


def _find_traits(text: str, words: frozenset[str]) -> Iterator[str]:
    name = find_name(text)
    stated = text[len(name) + 1 :] if name else text
    has_number = bool(_DIGIT.search(stated)) or not words.isdisjoint(NUMBER_WORDS)
    has_time = not words.isdisjoint(TIME_WORDS) or bool(_YEAR.search(stated))
    asked = _share_asked(stated)
    if asked == 1 and not has_number and not has_time:
        yield QUESTION
    if asked >= HALF:
        yield ASKING
    if not words.isdisjoint(SELF_WORDS):
        yield SELF
    if has_time:
        yield TIME
    if has_number:
        yield NUMBER
    if _is_answer(stated):
        yield ANSWER
    if name:
        yield SPOKEN
        yield from dict.fromkeys(map(speaker_trait, terms(name)))


def _share_asked(text: str) -> float:
    """Return the share of a text's characters that belong to questions."""
    if "?" not in text and "？" not in text:
        return 0.0
    sentences: Sequence[str] = [part for part in _SENTENCE_END.split(text.strip()) if part.strip()]
    asked = sum(len(part) for part in sentences if part.rstrip(" \"'”»)").endswith(("?", "？")))
    return asked / sum(map(len, sentences))


def _is_answer(text: str) -> bool:
    if len(text) > MAX_ANSWER_CHARS and _LIST.search(text):
        return True
    return bool(_OFFER.match(text.strip()[:40].lower().replace("’", "'")))
