"""Recognise chatter: small talk, reactions, and questions that carry no fact of their own.

A text is chatter if each of its sentences is. A sentence is, if it has next to no word besides function words and words
that react or judge, or if it asks without saying anything about the speaker, a person, a date or a number. What is not
recognised is a statement, so in doubt it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from wellkept.language.entries import Lexicon, split_words
from wellkept.language.languages import ANY, LEXICONS, find_language, index_phrases, match_phrase
from wellkept.language.recall_words import SMALL_TALK as OTHER_SMALL_TALK

MAX_CHARS = 600
"""Maximum length of chatter; a longer text says something."""

SMALL_TALK_MAX_CHARS = 120
"""Maximum length of small talk."""

MAX_CONTENT = 1
MAX_CONTENT_TO_YOU = 2
MAX_CONTENT_OF_REACTION = 2
MAX_CONTENT_OF_REACTION_TO_YOU = 4
"""Content words of a remark; of one about "you"; and of both when they start as a reaction ("Wow, …")."""

PERSONS = split_words("he she him her his they their we")
"""English words for people, who a statement may be about."""

BARE = split_words(
    "next today tomorrow then too there well team guys folks test testing shorter later stop wait please"
)
"""Small talk that is none beside a word that could be meant: "next" alone, but not "next trip"."""

PHRASES = {lexicon.code: index_phrases(lexicon.phrases) for lexicon in (*LEXICONS, ANY)}

# A name that some programs put before each message of a chat.
_LABEL = re.compile(r"[A-Z][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}: ")
_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[,.!?;:…\n]")
_DIGIT = re.compile(r"\d")
SMALL_TALK = index_phrases(ANY.small_talk | {" ".join(_TOKEN.findall(phrase)) for phrase in OTHER_SMALL_TALK})
_PUNCTUATION = frozenset(",.!?;:…\n")
_SENTENCE_ENDS = frozenset(".!?…\n")


class ChatterReading(NamedTuple):
    """Findings about a text."""

    is_small_talk: bool  # nothing but courtesy
    is_chatter: bool  # nothing but small talk, reactions and empty questions


def read_text(text: str) -> ChatterReading:
    """Tell chatter from statements.

    >>> read_text("Wow, that sounds amazing! How was your weekend?").is_chatter
    True
    >>> read_text("Wow, your brother bought the boat.").is_chatter, read_text("Maria owns the shop").is_chatter
    (False, False)
    """
    label = _LABEL.match(text)
    body = (text[label.end() :] if label else text).replace("’", "'")
    if len(body) > MAX_CHARS or _DIGIT.search(body):
        return ChatterReading(False, False)
    if is_small_talk(body):
        return ChatterReading(True, True)
    tokens = _TOKEN.findall(body)
    words = [token.lower() for token in tokens]
    lexicon = find_language(body.lower(), words) or ANY
    return ChatterReading(False, all(_is_empty(sentence, lexicon) for sentence in _split_sentences(tokens)))


def has_first_person(text: str, known: Collection[str] | None = None) -> bool:
    """Return True if the speaker talks about themselves. `known` are the words of the text, if the caller has them.

    >>> has_first_person("Mi hermano se mudó"), has_first_person("I decided to move"), has_first_person("We agreed")
    (True, True, False)
    """
    if known is not None and ANY.first_person.isdisjoint(known):
        return False
    lowered = text.lower().replace("’", "'")
    words = _TOKEN.findall(lowered)
    # A short sentence may not tell its language; then the words of any language count, which keeps rather than forgets.
    lexicon = find_language(lowered, words) or ANY
    return not lexicon.first_person.isdisjoint(words)


def _split_sentences(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the tokens of each sentence, with the mark that ends it."""
    start = 0
    for place, token in enumerate(tokens):
        if token in _SENTENCE_ENDS and (place + 1 == len(tokens) or tokens[place + 1] not in _SENTENCE_ENDS):
            yield tokens[start : place + 1]
            start = place + 1
    if start < len(tokens):
        yield tokens[start:]


def is_small_talk(text: str) -> bool:
    """Return True if `text` is nothing but thanks, greetings and acknowledgements.

    >>> is_small_talk("Thanks Anna, see you tomorrow!"), is_small_talk("ok, deploy it")
    (True, False)

    The name that a question ends with is what it asks about.

    >>> is_small_talk("Hi Anna, how are you?"), is_small_talk("Nice, France?"), is_small_talk("Great Canyon trip?")
    (True, False, False)
    """
    if len(text) > SMALL_TALK_MAX_CHARS:
        return False
    is_question, asks_about_name = text.rstrip().endswith("?"), False
    spelled = [token for token in _TOKEN.findall(text.replace("’", "'")) if token not in _PUNCTUATION]
    words = [word.lower() for word in spelled]
    if words and words[0] not in SMALL_TALK and words[0] not in ANY.courtesies:
        return False
    position, may_name, phrases, others = 0, False, 0, 0
    while position < len(words):
        if length := match_phrase(words, position, SMALL_TALK):
            phrase = " ".join(words[position : position + length])
            position, may_name, phrases = position + length, phrase in ANY.greetings, phrases + (phrase not in BARE)
            asks_about_name &= length == 1
            continue
        is_name = may_name and spelled[position][0].isupper()
        if not is_name and words[position] not in ANY.courtesies:
            return False
        asks_about_name |= is_name
        position, may_name, others = position + 1, False, others + 1
    if is_question and asks_about_name:
        return False
    return phrases > 0 or not others


def _is_empty(tokens: Sequence[str], lexicon: Lexicon) -> bool:
    """Return True if a sentence states nothing."""
    spelled = _remove_phrases(tokens, [token.lower() for token in tokens], lexicon)
    words = [token.lower() for token in spelled if token not in _PUNCTUATION]
    if not words:
        return True
    if not lexicon.first_person.isdisjoint(words) or not lexicon.dates.isdisjoint(words):
        return False
    content = [
        word
        for word in words
        if word not in lexicon.common and word not in lexicon.reactions and word not in lexicon.light
    ]
    if not content:
        return True
    names = set() if lexicon.has_capital_nouns else _find_names(spelled, lexicon)
    if names:
        return False
    if tokens[-1] == "?":
        return True
    if not lexicon.relations.isdisjoint(words):
        return False
    called = _find_called(spelled)
    count = sum(word not in called for word in content)
    is_reaction = words[0] in lexicon.reactions
    if not lexicon.second_person.isdisjoint(words):
        return count <= (MAX_CONTENT_OF_REACTION_TO_YOU if is_reaction else MAX_CONTENT_TO_YOU)
    if lexicon.reactions.isdisjoint(words) or not PERSONS.isdisjoint(words):
        return False
    return count <= (MAX_CONTENT_OF_REACTION if is_reaction else MAX_CONTENT)


def _remove_phrases(tokens: Sequence[str], words: Sequence[str], lexicon: Lexicon) -> Sequence[str]:
    """Return the tokens outside stock phrases, such as "I know" and "I'm glad"."""
    phrases = PHRASES[lexicon.code]
    if phrases.keys().isdisjoint(words):
        return tokens
    kept, position = list[str](), 0
    while position < len(words):
        length = match_phrase(words, position, phrases)
        if not length:
            kept.append(tokens[position])
        position += length or 1
    return kept


def _find_called(tokens: Sequence[str]) -> set[str]:
    """Return the names of those who are spoken to, in lower case: "Thanks, Anna!"."""
    return {
        token.lower()
        for place, token in enumerate(tokens)
        if token[0].isupper() and len(tokens) > 2 and _is_apart(tokens, place)
    }


def _is_apart(tokens: Sequence[str], place: int) -> bool:
    """Return True if punctuation or a border stands on both sides of a token."""
    is_start = place == 0 or tokens[place - 1] in _PUNCTUATION
    return is_start and (place + 1 == len(tokens) or tokens[place + 1] in _PUNCTUATION)


def _find_names(tokens: Sequence[str], lexicon: Lexicon) -> set[str]:
    """Return capitalised words inside the sentence that are not spoken to."""
    return {
        token
        for place, token in enumerate(tokens)
        if place
        and token[0].isupper()
        and not _is_apart(tokens, place)
        and token.lower() not in lexicon.common
        and token.lower() not in lexicon.reactions
        and token.lower() not in lexicon.light
    }
