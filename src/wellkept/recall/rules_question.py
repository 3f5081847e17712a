"""Parse a question: its words and their forms, the speaker it asks about, and its time spans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from wellkept.language.text import ASKS_NUMBER, ASKS_TIME, NOUN_LANGUAGE_WORDS, fold, speaker_trait, terms
from wellkept.language.text import LIGHT_WORDS as OTHER_LIGHT_WORDS
from wellkept.model import Role
from wellkept.recall.rules_dates import Span, spans

IRREGULAR = """
    become became, begin began begun, bite bitten, blow blew blown, break broke broken, bring brought, build built,
    buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew drawn, drink drank drunk,
    drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, fly flew flown,
    forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given,
    go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, know knew known,
    leave left, lend lent, lose lost, make made, mean meant, meet met, pay paid, prove proven, ride rode ridden,
    ring rang rung, run ran, say said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shook shaken,
    shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept,
    slide slid, speak spoke spoken, spend spent, spin spun, stand stood, steal stole stolen, stick stuck, strike struck,
    swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear tore torn,
    tell told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn,
    win won, withdraw withdrew withdrawn, write wrote written,
    man men, woman women, child children, person people, foot feet, tooth teeth, mouse mice, goose geese, wife wives,
    knife knives, shelf shelves, half halves, wolf wolves, thief thieves, loaf loaves"""


def other_forms(term: str) -> Sequence[str]:
    """Return the indexed terms of a word's other irregular forms; empty for most words.

    >>> other_forms("bought"), other_forms("go"), other_forms("tree")
    (('buy',), ('went', 'gone'), ())
    """
    return _families().get(term, ())


# Cached instead of computed at import: stemming all of them takes a few milliseconds.
@cache
def _families() -> Mapping[str, Sequence[str]]:
    families = [tuple(dict.fromkeys(terms(family))) for family in IRREGULAR.split(",")]
    return {form: tuple(other for other in family if other != form) for family in families for form in family}


MAX_TERMS = 64
"""Maximum number of terms searched; long pasted text is searched by its first words."""

LIGHT = 0.5
"""Weight of `LIGHT_WORDS`, which ask, count or date but seldom name the subject."""

LIGHT_WORDS = """
    also any some many much number times total different order earliest latest first last start starting begin mention
    mentioned ago past recent recently lately current currently previous previously time during before after since long
    day days week weeks month months year years one two three think thinking suggest suggestion recommend recommendation
    idea ideas tell remind know look looking want need like get got getting go going make making made good great new
    sure thing things something really"""

_SPEECH_VERBS = (
    r"(?:told|said|mention(?:ed)?|ask(?:ed)?|shared|wrote|gave|talked|explained|described|brought|recommended|suggested"
    r"|provided|listed|created|made|showed|advised|proposed|offered|named|used|called|included|calculated|came up)"
)
_I_SAID = re.compile(
    rf"\b(?:i|we)(?:'ve| have| had|'d)? (?:just |already |previously |once )?{_SPEECH_VERBS}\b"
    r"|\bdid i (?:say|tell|mention|ask)\b"
)
_YOU_SAID = re.compile(
    rf"\byou(?:'ve| have| had|'d)? (?:just |already |previously |once |also )?{_SPEECH_VERBS}\b"
    r"|\b(?:did|have|had) you\b|\byour (?:recommend|suggest|answer|advice|explanation|response|repl|list)"
    r"|\b(?:our|the) (?:previous|last|earlier|past|prior) (?:chat|conversation|discussion|session|talk)|\bremind me\b"
)
_HISTORY = re.compile(
    r"\b(?:audit|history|logs?|logged|journal|activity|verlauf|protokoll\w*|historique|journaux|historial|registros?"
    r"|cronologia|histórico)\b|\bwho (?:\w+ )?(?:changed|edited|deleted|erased|removed|stored|added|created|approved"
    r"|corrected|archived|exported|imported) (?:it|this|that|the|m-)\b"
    r"|\b(?:was|were|been|got) (?:\w+ )?(?:changed|edited|deleted|erased|removed|stored|corrected|archived|exported"
    r"|imported)\b|\b[a-z]-\d+\b"
)
_WITH_CAPITAL = re.compile(r"\b[^\W\d_a-zß-öø-ÿ]\w+")
_CAPITALISED = re.compile(r"(?<=[^.?!:\s] )[^\W\d_a-zß-öø-ÿ]\w+")
_FIRST_PERSON = re.compile(r"\b(?:i|my|mine|me|myself|we|our|ours|us)\b")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query."""

    terms: Sequence[str]  # distinct, as indexed; the forms of one word are adjacent
    forms: Sequence[int]  # number of terms that belong to each word
    weights: Sequence[float]  # weight of each word
    is_name: Sequence[bool] = ()  # for each word: it is written like a name
    names: Sequence[str] = ()  # traits of texts by a speaker whose name is among the words; see `language.text`
    speaker: Role | None = None  # the speaker the question asks about, if it says so
    spans: Sequence[Span] = ()  # the time spans it mentions
    asks_time: bool = False  # it asks when something was
    asks_number: bool = False  # it asks how many, how much or how old

    def count_content(self) -> int:
        """Return the number of words that do not merely ask, count or date."""
        return sum(weight == 1 for weight in self.weights)

    @property
    def lookups(self) -> Sequence[str]:
        """Terms to look up in an index: the words, then the names."""
        return [*self.terms, *self.names]

    @classmethod
    def read(cls, query: str, now: datetime) -> ParsedQuery:
        """Parse a query.

        >>> from datetime import UTC
        >>> question = ParsedQuery.read("Which hotel did you recommend last May?", datetime(2026, 3, 1, tzinfo=UTC))
        >>> question.terms, question.speaker, [str(span.first) for span in question.spans]
        (['hotel', 'recommend', 'last'], <Role.ASSISTANT: 'assistant'>, ['2025-05-01'])
        """
        words, folded, names = _word_forms(query), fold(query), find_names(query)
        return cls(
            terms=[form for word in words for form in word],
            forms=[len(word) for word in words],
            weights=[LIGHT if _light_terms().intersection(word) else 1.0 for word in words],
            is_name=[word[0] in names for word in words],
            names=[speaker_trait(term) for term in dict.fromkeys(terms(" ".join(_WITH_CAPITAL.findall(query))))],
            speaker=find_speaker(query),
            spans=spans(query, now),
            asks_time=bool(ASKS_TIME.search(folded)),
            asks_number=bool(ASKS_NUMBER.search(folded)),
        )


def _word_forms(query: str) -> list[tuple[str, ...]]:
    """Return the distinct words, each with its other forms, so that "went" and "go" count once."""
    words: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for term in list(dict.fromkeys(terms(query)))[:MAX_TERMS]:
        if term not in seen:
            words.append((term, *other_forms(term)))
            seen.update(words[-1])
    return words


def find_names(query: str) -> frozenset[str]:
    """Return the terms of words with a capital inside a sentence; German, which writes every noun so, has none."""
    found = " ".join(_CAPITALISED.findall(query))
    if not found or not NOUN_LANGUAGE_WORDS.isdisjoint(query.lower().split()):
        return frozenset()
    return frozenset(terms(found))


# Cached instead of computed at import: stemming all of them takes a few milliseconds.
@cache
def _light_terms() -> frozenset[str]:
    return frozenset(terms(f"{LIGHT_WORDS} {OTHER_LIGHT_WORDS}"))


def asks_history(query: str) -> bool:
    """Return True if a question asks for the records of what was done, not only for facts.

    >>> asks_history("Who deleted the note about Oslo?"), asks_history("Where does Ann live?")
    (True, False)
    """
    return _HISTORY.search(query.lower()) is not None


def find_speaker(query: str) -> Role | None:
    """Return the speaker a question asks about: the user if it says "I", the assistant if it says "you".

    >>> find_speaker("What breed is my dog?"), find_speaker("What did you suggest?"), find_speaker("Where is Ann?")
    (<Role.USER: 'user'>, <Role.ASSISTANT: 'assistant'>, None)
    """
    text = query.lower().replace("’", "'")
    if _I_SAID.search(text):
        return Role.USER
    if _YOU_SAID.search(text):
        return Role.ASSISTANT
    return Role.USER if _FIRST_PERSON.search(text) else None
