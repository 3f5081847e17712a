"""Read the statements of a user's turn: what it says about whom, and whether it says that something changed.

The unit is a sentence. It is kept unless it is excluded: as a fact, if it speaks of the user, of somebody the user
knows, or gives a thing a definite value; as a remark, which is only recalled, if it names or counts something or gives
an order about a known thing. What is shown and ended are whole sentences, so that nothing survives without its half.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from wellkept.facts import rules_signs as signs
from wellkept.facts.rules_words import (
    CODES,
    Vocabulary,
    load_kinds,
    load_list,
    load_names,
    load_shapes,
    load_words,
)
from wellkept.language.languages import LEXICONS, find_language
from wellkept.language.text import is_question, split_words, terms
from wellkept.memory import rules_importance as importance
from wellkept.model import Fact
from wellkept.secrets.rules_scan import MARK_START

MAX_READ_CHARS = 8_000
"""Characters of a turn that are read; more is pasted, not said."""

MAX_CHARS = 500
"""Characters of a statement."""

MAX_JOINED_CHARS = 300
MAX_SHORT_CHARS = 40
MAX_TASK_CHARS = 200
LONG_WORDS = 100
LEAST_OWN = 1 / 25
"""Vocabulary from which a turn may be pasted, and the share of words for the speaker from which it is not."""

MIN_WORDS = 3
MIN_PREMISE_WORDS = 4
MAX_TITLE_WORDS = 3
"""Vocabulary in quotation marks that may be a name; more is somebody else's sentence."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

USER = "user"
LEXICON_BY_CODE = {lexicon.code: lexicon for lexicon in LEXICONS}


class Tier(StrEnum):
    """Use of a statement."""

    FACT = "fact"
    REMARK = "remark"


class ChangeCue(StrEnum):
    """Vocabulary by which a statement says that something is not as it was."""

    CORRECTION = "correction"
    END = "end"
    FIRM = "firm"
    SOFT = "soft"
    ALSO = "also"
    NONE = "none"


class ExclusionReason(StrEnum):
    """ExclusionReason for leaving a sentence out."""

    QUESTION = "a question"
    REQUEST = "a request"
    HYPOTHETICAL = "a wish, a guess or a condition"
    FICTION = "a story or a quotation"
    JOKE = "a joke"
    PASSING = "a passing state"
    CHAT = "small talk"
    GENERAL = "about nobody in particular"
    PASTED = "a pasted text"
    UNREADABLE = "in a language the rules do not know"
    SECRET = "what is left of a removed secret"
    LONG = f"longer than {MAX_CHARS} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence that says something, with what two statements are compared by."""

    text: str
    language: str
    tier: Tier
    subject: str  # "user", a relation in English, a name as it is written, or the thing
    subjects: frozenset[str]  # in lower case, with every name it goes by
    mentions: frozenset[str] = frozenset()  # relations and names anywhere in the sentence
    is_thing: bool = False  # the subject is neither a person nor an animal
    cue: ChangeCue = ChangeCue.NONE
    cues: frozenset[ChangeCue] = frozenset()
    attribute: str = ""
    value: str = ""
    stems: tuple[str, ...] = ()
    content: frozenset[str] = frozenset()  # stems that say what it is about, without those of the subject
    opening: frozenset[str] = frozenset()  # stems before the first verb: "invoice", "1041"
    many: str = ""  # "i speak" of what one may have several of: "I speak French"
    head: str = ""  # "rent" of "my rent is 900 euros"
    fresh: str = ""  # stem of what it says is new: "dentist" of "a new dentist"
    removed: frozenset[str] = frozenset()  # stems of what it ends or replaces
    shapes: Mapping[str, frozenset[str]] = field(default_factory=dict)  # values by their form: weekday, money, …
    kinds: frozenset[tuple[str, str]] = frozenset()
    traits: frozenset[str] = frozenset()  # negation, past, future, passing
    context: frozenset[str] = frozenset()  # content stems of the whole turn
    vector: NDArray[np.float32] | None = None
    reading: NDArray[np.float32] | None = None
    around: NDArray[np.float32] | None = None  # mean reading of the sentences beside it


@dataclass(frozen=True, slots=True)
class Excluded:
    """A sentence that is not kept."""

    text: str
    reason: ExclusionReason
    remark: Statement | None = None  # what it says if its reading tells that it states something all the same


def read_turn(text: str, *, usual: str = "", known: Collection[str] = ()) -> Iterator[Statement | Excluded]:
    """Yield the sentences of a user's turn. `usual` is the user's language, `known` names that were used before.

    >>> [each.text for each in read_turn("Hi! I'm allergic to nuts. What can I eat?") if isinstance(each, Statement)]
    ["I'm allergic to nuts."]
    """
    body = signs.QUOTED.sub("", signs.FENCE.sub("", text[:MAX_READ_CHARS])).replace("’", "'").replace("‘", "'")
    code = _find_code(body, usual) or "en"
    known = {*(name.lower() for name in known), *_find_inner_names(body, code)}
    kept: list[Statement | Excluded] = []
    for sentence in _split_turn(body, code, kept):
        read = _read_sentence(sentence, code, known)
        before = kept[-1] if kept else None
        if isinstance(read, Excluded) and read.reason is ExclusionReason.JOKE and isinstance(before, Statement):
            # "I'm kidding" takes back what was said before it.
            words = load_words(_find_code(sentence) or code)
            if words.find("confirmed").match(_strip(sentence, words)):
                kept[-1] = Excluded(before.text, ExclusionReason.JOKE)
        joined = _join(before, read, sentence, code, known)
        if joined is not None:
            kept[-1] = joined
        else:
            kept.append(read)
    context = frozenset[str]().union(*(each.content for each in kept if isinstance(each, Statement)))
    for each in kept:
        yield replace(each, context=context) if isinstance(each, Statement) else each


def read_statement(text: str, *, usual: str = "", known: Collection[str] = ()) -> Statement:
    """Read a text that is known to state something, such as a stored fact, whatever the exclusions say of it."""
    bare = text.replace("’", "'").replace("‘", "'")
    code = _find_code(bare, usual) or "en"
    names = {*(name.lower() for name in known), *_find_inner_names(bare, code)}
    return _describe(bare, load_words(code), names, Tier.FACT)


def describe_parts(statement: Statement, *, is_remark: bool) -> Fact:
    """Return the parts of a statement that are stored with it."""
    return Fact(
        subject=statement.subject,
        attribute=statement.attribute or None,
        value=statement.value or None,
        is_remark=is_remark,
    )


def _split_turn(body: str, code: str, kept: list[Statement | Excluded]) -> Iterator[str]:
    """Yield the sentences of a turn up to where a text begins that is pasted, not said."""
    words = load_words(code)
    if _is_pasted(body, words):
        kept.append(Excluded(body[:80], ExclusionReason.PASTED))
        return
    for line in signs.split_sentences(body):
        if line.startswith("#"):
            # A comment in code, or the heading of a text.
            kept.append(Excluded(line[:80], ExclusionReason.PASTED))
            continue
        sentence = signs.BULLET.sub("", line)
        lowered = sentence.lower()
        if signs.TASK.match(lowered[:MAX_TASK_CHARS]) or _PASTED_START.match(lowered):
            kept.append(Excluded(sentence[:80], ExclusionReason.PASTED))
            return
        if signs.CITING.match(lowered):
            kept.append(Excluded(sentence[:80], ExclusionReason.FICTION))
            return
        yield sentence


# "From: Ann", "On Monday Ann wrote:", a line of a log.
_PASTED_START = re.compile(
    r"(?:from|to|subject|date|sent|von|an|betreff|de|à|objet|para|asunto): \S|on .{5,60} wrote:|-{3,}|={3,}|<[a-z/!]"
    r"|\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d|(?:info|debug|warn(?:ing)?|error)[: ]|fwd?:|re: "
)


def _is_pasted(body: str, words: Vocabulary) -> bool:
    spoken = split_words(body)
    if len(spoken) < LONG_WORDS:
        return False
    own = len(words.find("self").findall(body.lower()))
    return own < LEAST_OWN * len(spoken)


def _find_code(text: str, usual: str = "") -> str:
    lowered = text.lower()
    found = find_language(lowered, signs.WORD.findall(lowered))
    if found is not None:
        return found.code if found.code in CODES else ""
    if usual or len(lowered) > MAX_SHORT_CHARS:
        return usual
    # A text too short to tell its language is in the first in which somebody speaks of themselves.
    return next((code for code in CODES if load_words(code).has("self", lowered)), "")


def _strip(sentence: str, words: Vocabulary) -> str:
    """Return a sentence in lower case without its opening: "Oh, by the way, I moved" → "i moved"."""
    lowered = sentence.lower().strip(" \"'“”„«»*_")
    bare = words.find("opening").sub("", lowered)
    return bare or lowered


def _read_sentence(sentence: str, code: str, known: Collection[str]) -> Statement | Excluded:
    """Judge a sentence, and describe it if it is kept."""
    words = load_words((_find_code(sentence) if len(sentence) > 25 else "") or code)
    bare = _strip(sentence, words)
    if signs.UNSPACED.search(sentence) or not signs.WORD.search(sentence):
        return Excluded(sentence, ExclusionReason.UNREADABLE)
    if MARK_START in sentence:
        return Excluded(sentence, ExclusionReason.SECRET)
    if len(sentence) > MAX_CHARS:
        return Excluded(sentence[:80], ExclusionReason.LONG)
    if is_question(sentence) or words.find("asking").match(bare) or signs.TAG_END.search(sentence):
        premise = _find_premise(sentence, words)
        return _read_sentence(premise, code, known) if premise else Excluded(sentence, ExclusionReason.QUESTION)
    is_standing = words.find("standing").match(bare) is not None and not words.find("generic").match(bare)
    is_order = words.find("order").match(bare) is not None
    if (words.find("request").match(bare) or signs.UNWANTED.match(bare)) and not is_standing and not is_order:
        return Excluded(sentence, ExclusionReason.REQUEST, _describe(sentence, words, known, Tier.REMARK))
    reason = None if is_standing else _find_reason(sentence, bare, words, is_order=is_order)
    if reason is not None and not (reason in OF_A_CLAUSE and _has_statement(sentence, bare, words, known)):
        is_open = reason in OF_A_CLAUSE
        return Excluded(sentence, reason, _describe(sentence, words, known, Tier.REMARK) if is_open else None)
    tier = Tier.REMARK if is_order and not is_standing else Tier.FACT
    statement = _describe(sentence, words, known, tier)
    return statement if is_standing else _find_tier(statement, bare, words)


def _find_premise(sentence: str, words: Vocabulary) -> str:
    """Return what a question rests on: "I'm vegan, what can I eat there?" → "I'm vegan"."""
    cut = signs.DEMAND.sub("", sentence)
    if cut == sentence:
        parts = [part for part in re.split(r"\s[-–—]\s|[.;:]\s", sentence) if part]
        cut = parts[0] if len(parts) > 1 else sentence
    cut = cut.rstrip(" ,?")
    is_short = len(split_words(cut)) < MIN_PREMISE_WORDS
    if cut == sentence.rstrip(" ,?") or is_short or words.find("asking").match(_strip(cut, words)):
        return ""
    return cut


def _find_reason(sentence: str, bare: str, words: Vocabulary, *, is_order: bool) -> ExclusionReason | None:
    """Return why a sentence is no statement; None if it is one."""
    if words.find("confirmed").match(bare) or words.has("joke", bare):
        return ExclusionReason.JOKE
    is_conditional = words.find("unreal").match(bare) is not None and not words.has("lasting", bare)
    if is_conditional or words.has("hypothetical", bare):
        return ExclusionReason.HYPOTHETICAL
    if words.has("fiction", bare) or _is_quotation(sentence) or signs.CITED.match(sentence):
        return ExclusionReason.FICTION
    if signs.CODE.search(sentence) or signs.FORMULA.search(sentence) or words.has("trouble", bare):
        return ExclusionReason.PASSING
    if is_order:
        return None
    least = MIN_WORDS - 1 if words.has("self", bare) else MIN_WORDS
    if importance.is_chatter(sentence) or len(split_words(bare)) < least:
        return ExclusionReason.CHAT
    if (words.has("chat", bare) or words.has("you", bare)) and not words.has("correction", bare):
        return ExclusionReason.CHAT
    has_change = any(words.has(cue, bare) for cue in ("end", "correction", "firm"))
    is_momentary = words.has("moment", bare) and not words.has("begun", bare)
    if not has_change and (is_momentary or words.has("passing", bare)):
        return ExclusionReason.PASSING
    return None


OF_A_CLAUSE = (ExclusionReason.HYPOTHETICAL, ExclusionReason.PASSING, ExclusionReason.CHAT)
"""Reasons that hold for a clause: "I'm tired, we moved to Leeds yesterday" states something all the same."""


def _has_statement(sentence: str, bare: str, words: Vocabulary, known: Collection[str]) -> bool:
    """Return True if a clause of a sentence would be kept by itself, and gives something a value."""
    if words.find("unreal").match(bare):
        return False
    parts = [part for each in split_clauses(sentence, words) for part in each.split(", ")]
    if len(parts) < LEAST_CLAUSES:
        return False
    for part in parts:
        clause = _strip(part, words)
        if len(split_words(clause)) < MIN_PREMISE_WORDS or _find_reason(part, clause, words, is_order=False):
            continue
        read = _find_tier(_describe(part, words, known, Tier.FACT), clause, words)
        if (
            isinstance(read, Statement)
            and read.tier is Tier.FACT
            and (find_values(read) or words.has("lasting", clause))
        ):
            return True
    return False


LEAST_CLAUSES = 2


def split_clauses(sentence: str, words: Vocabulary) -> list[str]:
    """Return the clauses of a sentence that have a subject of their own.

    >>> split_clauses("I live in Turku and I keep kosher", load_words("en"))
    ['I live in Turku', 'I keep kosher']
    """
    clauses, start = [], 0
    for found in words.find("link").finditer(sentence.lower()):
        clauses.append(sentence[start : found.start()])
        start = found.end()
    return [*clauses, sentence[start:]]


def is_whole_clause(clause: str, code: str) -> bool:
    """Return True if a clause could be a sentence of its own: it speaks of the user and states something."""
    if load_words(code).find("self").match(clause.lower()) is None:
        return False
    read = list(read_turn(clause, usual=code))
    return len(read) == 1 and isinstance(read[0], Statement) and read[0].tier is Tier.FACT


def find_values(statement: Statement) -> frozenset[str]:
    """Return what gives a statement its value: names, numbers and dates, and values of a kind."""
    values = {value for name in statement.shapes for value in statement.shapes[name]}
    named = {name for name in statement.mentions if name not in statement.subjects}
    return frozenset(values | named | {value for _, value in statement.kinds})


_QUOTATION = re.compile(r"[\"“„«»‟]([^\"“”„«»]{3,})[\"”“»«]|(?<!\w)'([^']{12,})'(?!\w)")


def _is_quotation(sentence: str) -> bool:
    return any(
        len((found[1] or found[2]).split()) > MAX_TITLE_WORDS and not (found[1] or found[2]).istitle()
        for found in _QUOTATION.finditer(sentence)
    )


def _find_tier(statement: Statement, bare: str, words: Vocabulary) -> Statement | Excluded:
    """Return a statement with its tier, or leave it out if it is about nobody and nothing in particular."""
    is_own = USER in statement.subjects or words.has("self", bare)
    is_somebody = not statement.is_thing and statement.subject not in ("", USER)
    has_value = bool(statement.shapes) or bool(statement.attribute)
    if statement.tier is Tier.REMARK:
        return statement
    if words.find("generic").match(bare) and not words.has("self", bare):
        return Excluded(statement.text, ExclusionReason.GENERAL, replace(statement, tier=Tier.REMARK))
    if is_own or is_somebody:
        is_weak = not has_value and not words.has("lasting", bare) and len(statement.content) < 1
        remark = replace(statement, tier=Tier.REMARK)
        return Excluded(statement.text, ExclusionReason.CHAT, remark) if is_weak and not statement.cues else statement
    if statement.is_thing and statement.head and (has_value or statement.cue in CHANGES):
        return statement
    if has_value or statement.mentions or (statement.cue in CHANGES and statement.content) or statement.kinds:
        return replace(statement, tier=Tier.REMARK)
    return Excluded(statement.text, ExclusionReason.GENERAL, replace(statement, tier=Tier.REMARK))


CHANGES = (ChangeCue.CORRECTION, ChangeCue.END, ChangeCue.FIRM, ChangeCue.SOFT)


def _join(
    before: Statement | Excluded | None,
    read: Statement | Excluded,
    sentence: str,
    code: str,
    known: Collection[str],
) -> Statement | None:
    """Return the statement before, joined with a sentence that starts with a pronoun for its subject; else None."""
    if not isinstance(before, Statement):
        return None
    words = load_words(before.language)
    bare = _strip(sentence, words)
    if not words.find("pronoun").match(bare) or len(before.text) + len(sentence) > MAX_JOINED_CHARS:
        return None
    is_dull = isinstance(read, Excluded) and read.reason is not ExclusionReason.GENERAL
    if is_dull or words.has("trouble", bare) or is_question(sentence):
        return None
    joined = _describe(f"{before.text} {sentence}", words, known, before.tier)
    return replace(joined, subject=before.subject, subjects=before.subjects, is_thing=before.is_thing)


def _describe(sentence: str, words: Vocabulary, known: Collection[str], tier: Tier) -> Statement:
    """Compute what a statement is compared by."""
    bare = _strip(sentence, words)
    spelled = _WORD.findall(sentence)
    subject = find_subject(sentence, words, known)
    stems = tuple(terms(_ORDINAL.sub(r"\1", bare)))
    is_own = USER in subject.all
    part = "slots" if is_own else "others"
    attribute, value = find_slot(bare, sentence, words, part, is_thing=subject.is_thing and not is_own)
    cues = frozenset(ChangeCue(name) for name in ("correction", "end", "firm", "soft", "also") if words.has(name, bare))
    own = frozenset(stem for name in subject.all | subject.spelled for stem in terms(name))
    return Statement(
        text=sentence,
        language=words.code,
        tier=tier,
        subject=subject.label,
        subjects=subject.all,
        mentions=_find_mentions(spelled, words, known),
        is_thing=subject.is_thing,
        cue=next((cue for cue in ChangeCue if cue in cues), ChangeCue.NONE),
        cues=cues,
        attribute=attribute,
        value=value,
        stems=stems,
        content=frozenset(stem for stem in stems if weigh(stem, words.code) >= LIGHT_WEIGHT) - own,
        opening=_find_opening(spelled, words.code),
        many=found[0] if (found := words.find("many").match(bare)) else "",
        head=subject.head,
        fresh=_find_fresh(bare, words),
        removed=_find_removed(bare, words),
        shapes=find_shapes(bare),
        kinds=load_kinds().find(stems),
        traits=frozenset(name for name in TRAITS if words.has(name, bare)),
    )


# Weights of stems. Those of function words are left out by `terms` or listed in the lexicon.
LIGHT_WEIGHT = 0.3
NUMBER_WEIGHT = 0.5
LIGHT = frozenset(stem for word in load_list("light") for stem in terms(word))


def weigh(stem: str, code: str = "en") -> float:
    """Return how much a shared stem says about two statements."""
    if stem.isdigit():
        return NUMBER_WEIGHT
    if stem in LIGHT:
        return LIGHT_WEIGHT / 2
    lexicon = LEXICON_BY_CODE.get(code)
    if lexicon is not None and (stem in lexicon.common or stem in lexicon.first_person):
        return 0.0
    return 1.0


@dataclass(frozen=True, slots=True)
class StatementSubject:
    """Whom or what a sentence is about."""

    label: str
    all: frozenset[str]
    spelled: frozenset[str] = frozenset()  # the words it is named by
    head: str = ""
    is_thing: bool = False


_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
MAX_SUBJECT_WORDS = 14
MAX_NOUN_WORDS = 5


def find_subject(sentence: str, words: Vocabulary, known: Collection[str] = ()) -> StatementSubject:
    """Find whom or what a sentence is about: the first subject that it names.

    >>> find_subject("My sister Lena moved to Rome", load_words("en")).all == {"sister", "lena"}
    True
    >>> find_subject("The deadline is the 14th", load_words("en")).head
    'deadlin'
    """
    spelled = _WORD.findall(sentence)
    lexicon = LEXICON_BY_CODE[words.code]
    found: StatementSubject | None = None
    for place, word in enumerate(spelled[:MAX_SUBJECT_WORDS]):
        lowered = word.lower()
        if words.find("speaker").match(lowered):
            found = found if found and not found.is_thing else StatementSubject(USER, frozenset({USER}))
            break
        if words.find("possessive").match(lowered):
            found = _read_owned(spelled, place, words)
            break
        if not place and lowered in words.relations:
            # "Grandma turned ninety".
            found = StatementSubject(words.relations[lowered], frozenset({words.relations[lowered]}), frozenset({word}))
            break
        name = _base(word)
        if name.lower() in known or (place and _is_name(spelled, place, lexicon.has_capital_nouns, words.code)):
            is_object = place and spelled[place - 1].lower() in _PREPOSITIONS
            if not is_object and found is None:
                found = StatementSubject(name, frozenset({name.lower()}), frozenset({name}))
                break
        is_late = place > 1 or (place == 1 and words.find("pronoun").match(spelled[0].lower()))
        if found is None and lowered in _ARTICLES and not is_late:
            found = _read_thing(spelled, place + 1, words)
        elif found is None and name.lower() in load_names() and word[0].isupper():
            found = StatementSubject(name, frozenset({name.lower()}), frozenset({name}))
            break
        elif found is None and not place and lowered not in lexicon.common:
            found = _read_opening_thing(spelled, words)
    if found is None:
        found = StatementSubject(USER if words.has("self", sentence.lower()) else "", frozenset(), is_thing=True)
        found = replace(found, all=frozenset({USER})) if found.label else found
    elif USER not in found.all and words.has("object_self", sentence.lower()):
        found = replace(found, all=found.all | {USER})
    return found


_ARTICLES = load_list("articles")
_PREPOSITIONS = load_list("prepositions")


def _base(word: str) -> str:
    return re.sub(r"['’](?:s|re|ll|d|ve)?$", "", word)


def _stem(word: str) -> str:
    return next(iter(terms(word)), word.lower())


def _is_name(spelled: Sequence[str], place: int, has_capital_nouns: bool, code: str) -> bool:
    """Return True if a word inside a sentence is written like a name."""
    word = spelled[place]
    if not word[0].isupper() or len(word) < 2 or (word.isupper() and len(word) > 4):
        return False
    lexicon = LEXICON_BY_CODE[code]
    lowered = _base(word).lower()
    if lowered in lexicon.common or lowered in lexicon.dates or lowered in lexicon.first_person:
        return False
    if not has_capital_nouns:
        return True
    # In German, a name has no article, and does not follow an adjective or "mein".
    before = spelled[place - 1].lower() if place else ""
    return before in ("mit", "von", "bei", "heißt", "ist", "und", "namens", "herr", "frau")


def _read_owned(spelled: Sequence[str], place: int, words: Vocabulary) -> StatementSubject:
    """Return the subject of "my …": somebody, or a thing of the user with its head noun."""
    lexicon = LEXICON_BY_CODE[words.code]
    head = ""
    for position in range(place + 1, min(place + 1 + MAX_NOUN_WORDS, len(spelled))):
        word = spelled[position]
        lowered = _base(word).lower()
        if lowered in words.relations:
            relation = words.relations[lowered]
            is_possessive = word != _base(word)
            names, label = {relation}, relation
            following = spelled[position + 1] if position + 1 < len(spelled) else ""
            if following and following.lower() in ("and", "und", "et", "y") and len(spelled) > position + 2:
                following = ""
            if following[:1].isupper() and _base(following).lower() not in lexicon.common:
                names.add(_base(following).lower())
                label = _base(following)
            spelt = frozenset({word, following} - {""})
            following_head = _stem(spelled[position + 1]) if is_possessive and position + 1 < len(spelled) else ""
            return StatementSubject(label, frozenset(names), spelt, head=following_head)
        if lowered in lexicon.common or lowered in _VERBS:
            break
        head = _stem(_base(word))
    return StatementSubject(USER, frozenset({USER}), head=head)


_VERBS = load_list("verbs")


def _read_thing(spelled: Sequence[str], place: int, words: Vocabulary) -> StatementSubject | None:
    """Return the thing named after an article, its last noun before a verb, or somebody by a relation."""
    head = ""
    for word in spelled[place : place + MAX_NOUN_WORDS]:
        lowered = _base(word).lower()
        if lowered in words.relations and word == _base(word):
            relation = words.relations[lowered]
            return StatementSubject(relation, frozenset({relation}), frozenset({word}))
        if lowered in _VERBS or lowered in _PREPOSITIONS or lowered in LEXICON_BY_CODE["en"].common:
            break
        head = _base(word)
        if word != head:
            break
    return (
        StatementSubject(head.lower(), frozenset({head.lower()}), frozenset({head}), _stem(head), is_thing=True)
        if head
        else None
    )


def _read_opening_thing(spelled: Sequence[str], words: Vocabulary) -> StatementSubject | None:
    """Return the thing that a sentence begins with, without an article: "Chess club is on Sundays", "rent's 910"."""
    for place, word in enumerate(spelled[:MAX_NOUN_WORDS]):
        is_verb = place > 0 and word.lower() in _VERBS
        if is_verb or word != _base(word):
            noun = _base(spelled[place - 1] if is_verb else word)
            return StatementSubject(noun, frozenset({noun.lower()}), frozenset({noun}), _stem(noun), is_thing=True)
    first = _base(spelled[0])
    if not first[0].isupper():
        return None
    return StatementSubject(first, frozenset({first.lower()}), frozenset({first}), _stem(first), is_thing=True)


def _find_inner_names(body: str, code: str) -> frozenset[str]:
    """Return the names that are written with a capital inside a sentence, in lower case."""
    lexicon = LEXICON_BY_CODE[code]
    found = set()
    for sentence in signs.split_sentences(body):
        spelled = _WORD.findall(sentence)
        for place in range(1, len(spelled)):
            is_object = spelled[place - 1].lower() in ("in", "to", "at", "from", "on", "nach", "à", "en", "near")
            if not is_object and _is_name(spelled, place, lexicon.has_capital_nouns, code):
                found.add(_base(spelled[place]).lower())
    return frozenset(found)


def _find_mentions(spelled: Sequence[str], words: Vocabulary, known: Collection[str]) -> frozenset[str]:
    """Return the relations and names in a sentence."""
    lexicon = LEXICON_BY_CODE[words.code]
    found = set()
    for place, word in enumerate(spelled):
        lowered = _base(word).lower()
        if lowered in words.relations:
            found.add(words.relations[lowered])
        elif (
            lowered in known
            or (word[0].isupper() and lowered in load_names())
            or (place and _is_name(spelled, place, lexicon.has_capital_nouns, words.code))
        ):
            found.add(lowered)
    return frozenset(found)


def _find_opening(spelled: Sequence[str], code: str) -> frozenset[str]:
    """Return the stems of what stands before the first verb and names a thing: "Invoice 1041 is due"."""
    place = next((place for place, word in enumerate(spelled) if word.lower() in _VERBS), 0)
    stems = terms(" ".join(spelled[:place]))
    return frozenset(stem for stem in stems if weigh(stem, code) > 0)


def _find_removed(bare: str, words: Vocabulary) -> frozenset[str]:
    """Return the stems of what a statement says has ended or was replaced."""
    found: set[str] = set()
    for pattern in words.removed:
        for match in pattern.finditer(bare):
            found.update(
                stem for stem in terms(_ORDINAL.sub(r"\1", match["x"])) if weigh(stem, words.code) > LIGHT_WEIGHT
            )
    return frozenset(found)


def _find_fresh(bare: str, words: Vocabulary) -> str:
    """Return the stem of the noun that is said to be new, the last before a verb or a preposition."""
    found = words.find("fresh").search(bare)
    lexicon = LEXICON_BY_CODE[words.code]
    noun = ""
    for word in split_words(found["x"]) if found else ():
        if word in lexicon.common or word in _VERBS or word in _PREPOSITIONS:
            break
        noun = word
        if words.code in ("fr", "es"):
            break
    return _stem(noun) if noun else ""


TRAITS = ("negation", "past", "future", "once", "plan", "retro", "event")
MAX_VALUE_WORDS = 8
_TAIL = re.compile(
    r"(?:,| (?:now|nowadays|since|because|but|and (?:i|we|my)|so|which|where|who|last|this|again|these days|instead"
    r"|after|for (?:\w+ )?(?:years?|months?|weeks?)|by the way|jetzt|seit|maintenant|depuis|ahora|desde)\b| [-–—]|;"
    r"|\.(?:\s|$)|!|\?).*$"
)


def find_slot(bare: str, sentence: str, words: Vocabulary, part: str, *, is_thing: bool = False) -> tuple[str, str]:
    """Return the attribute that a statement gives a value to, and the value; empty if none is told."""
    for name, pattern in words.find_slots(part):
        if found := pattern.search(bare):
            value = _write_as(sentence, _TAIL.sub("", found["v"]).strip(" .,!"))
            is_value = value and len(value.split()) <= MAX_VALUE_WORDS and value.lower() not in _NO_VALUES
            # "My boss is very patient" names nobody, and "Standup moved to 10:15" has no home.
            if is_value and (value[0].isupper() if name in PEOPLE_OF_USER else not is_thing):
                return name, value
    return "", ""


PEOPLE_OF_USER = frozenset({"manager", "doctor"})
"""Attributes of the user whose value is somebody, who may be the subject: "Henrik is my new boss"."""


def _write_as(sentence: str, value: str) -> str:
    at = sentence.lower().find(value)
    return sentence[at : at + len(value)] if at >= 0 else value


def exchange_value(new: Statement, olds: Sequence[str]) -> tuple[int, str] | None:
    """Return the one older sentence that a correction without a subject means, by its place, with the right value.

    >>> exchange_value(read_statement("Sorry, it's the 14th, not the 4th."), ["I ski.", "Dinner is on the 4th."])
    (1, 'Dinner is on the 14th.')
    """
    words = load_words(new.language)
    bare = _strip(new.text, words)
    found = words.find("exchange").match(bare) or words.find("exchange_back").match(bare)
    if found is None:
        return None
    wrong = re.compile(rf"(?<!\w){re.escape(found['x'])}(?!\w)", re.IGNORECASE)
    meant = [(place, old) for place, old in enumerate(olds) if wrong.search(old)]
    if len(meant) != 1:
        return None
    right = _write_as(new.text, found["v"])
    return meant[0][0], wrong.sub(lambda _: right, meant[0][1])


_NO_VALUES = load_list("no_values")

EXACT_SHAPES = frozenset(load_shapes()) - {"count", "year"}
"""Forms that tell more than that there is a number."""


def find_shapes(bare: str) -> Mapping[str, frozenset[str]]:
    """Return the values in a text by their form.

    >>> find_shapes("we meet on tuesdays at 5 pm")["weekday"]
    frozenset({'tuesday'})
    """
    found: dict[str, frozenset[str]] = {}
    has_digit = any(character.isdigit() for character in bare)
    for name, pattern in load_shapes().items():
        if has_digit or name in _WITHOUT_DIGITS:
            values = frozenset(match[0].rstrip("s").strip() for match in pattern.finditer(bare))
            if values:
                found[name] = values
    return found


_WITHOUT_DIGITS = frozenset("clock weekday month duration times mail count".split())
