"""Read lasting facts, preferences, decisions and promises out of a conversation, without a model.

A message is split into sentences, and these into clauses. A clause is kept, in its own words, if enough speaks for a
lasting fact: a state or a habit, the speaker or somebody known, a name, a number, a date. Questions, requests, small
talk, passing states and guesses are left out. Of an assistant, only promises and decisions with a date or a number are
kept, and what the user confirms; not what repeats the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.model import Role
from recollect.policy.lexicon import cues
from recollect.policy.lexicon.entries import Lexicon
from recollect.policy.lexicon.languages import LEXICONS, find_language
from recollect.policy.memories import chatter
from recollect.policy.memories.categories import Category
from recollect.policy.memories.gist import LONG_WORDS, PERSONAL_SHARE, is_long_answer
from recollect.policy.memories.importance import find_category_of_sentence
from recollect.policy.text import is_question, terms

MAX_READ_CHARS = 8_000
"""Characters of a message that are read; more is pasted, not said."""

MAX_FACT_CHARS = 500
MAX_TASK_CHARS = 200
"""Characters in which a sentence must announce a text to work on; matching takes cubic time."""

MIN_WORDS = 3
MAX_SHORT_CHARS = 40
MIN_UNSPACED_CHARS = 6

ENOUGH = 3
"""Points from which a clause is a fact."""

REPEATED = 0.6
"""Share of an assistant's words that the user said before, from which they only restate them."""

QUESTION = "a question"
SMALL_TALK = "small talk"
REQUEST = "a request"
RESTATED = "restates what the user said"
OWN_WORDS = "the assistant's own words"
UNSURE = "not a lasting fact"
PASTED = "a pasted text"
TOO_LONG = f"longer than {MAX_FACT_CHARS} characters"
UNKNOWN_LANGUAGE = "in a language the rules do not know"
"""Reasons for leaving something out."""

_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^\s{0,3}>.*$", re.MULTILINE)
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’»)]*\s+(?=\S)|(?<=[。！？])|(?<=[!?])(?=[^\W\d_])|;\s+|\n+|\s[–—]\s|\s:[)D(]\s?"
)
_ABBREVIATION = re.compile(
    r"\b(?:dr|mr|mrs|ms|st|nr|no|vs|e\.g|i\.e|z\.b|prof|sr|sra|hr|fr|dott|bzw|ca|approx)\.$", re.I
)
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|oh|ah|yeah|yes|yep|no|nah|sure|well|so|and|but|also|btw|fyi|hm+|ooh|right|true|cool|great"
    r"|perfect|thanks|thx|thank you|good|nice|hi|hey|hello|morning|actually|anyway|by the way"
    r"|also|ja|nein|gut|klar|ach|und|aber|danke|hallo|übrigens|eben|moin"
    r"|oui|non|ah|et|mais|merci|bonjour|alors|bref|bon|d'accord"
    r"|sí|vale|pues|y|pero|gracias|hola|bueno|mmm|bien|exacto|perfecto"
    r"|sim|não|pois|e|mas|obrigad[oa]|boa|olá|oi|fixe"
    r"|sì|ma|grazie|ciao|beh|dai|giusto|bene)(?:[ ,.!:–-]+|$))+",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\w\(\)|[;{}]\s*$|^\s*(?:\$ |>>> |def |class |import |SELECT )|\w(?:Error|Exception):|=>|==|::|&&|__|\\_"
)
_CLAUSE = re.compile(r",\s+|\s+[-–]\s+|\s+(?=\()")
_NUMBER = re.compile(r"\d")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_QUESTION = re.compile(r"(?:吗|ですか|ますか|でしょうか)[。.]?\s*$")
_NAME = re.compile(r"(?<=[\w,)] )[A-ZÀ-Þ][\w.'’-]+")
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# "Yes, but not anymore" confirms nothing.
_RESERVATION = re.compile(
    r"\b(?:but|except|no longer|not|never|used to|aber|nicht|kein\w*|mais|pas|jamais|pero|ya no|nunca|mas|não|nem"
    r"|però|non)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
# Asks whether the statement before it is true, so that is a question as well.
_TAG = re.compile(
    r"^\W*(?:(?:is|are|am|was|were|do|does|did|has|have|had|can|will|would)(?:n['’]t)? (?:i|it|he|she|we|they"
    r"|that)(?: not)?"
    r"|isn['’]t that (?:so|right|true)|innit|right|correct|true|yes|no|or|or not|oder(?: nicht)?|nicht wahr"
    r"|stimmt['’]?s|richtig|gell"
    r"|n['’]est-ce pas|non|pas vrai|c['’]est ça|verdad|cierto|no es así|né|não é|certo|verdade|vero|giusto"
    r"|no è vero)\W*$",
    re.IGNORECASE,
)
_UNWANTED = re.compile(
    r"^(?:please |bitte |(?:can|could) you )?(?:forget (?:that|about|what|my|i\b|the fact)|delete (?:that|what) i"
    r"|(?:do not|don't) (?:remember|store|save|keep|note|memori[sz]e|record)|vergiss|(?:merke?"
    r"|speichere?) (?:dir )?(?:\w+ )?nicht"
    r"|oublie|ne (?:retiens|mémorise|note|garde) pas|olvida|no (?:recuerdes|guardes|anotes)|esque[cç]|não (?:lembr"
    r"|guard|anot)"
    r"|dimentica|non (?:ricordare|salvare|annotare))",
)
# Up to a colon, or to a word that points at what follows, without a word for the speaker: "Translate this: …".
_TASK = re.compile(
    r"^(?:(?!\b(?:i|we|my|ich|wir|je|yo|eu|io)\b)[^:])*?\b(?:(?:translate|proofread|rewrite|rephrase|paraphrase"
    r"|summari[sz]e"
    r"|übersetz\w*|korrigier\w*|formulier\w*|tradui\w*|corrige\w*|reformule\w*|résume\w*|traduce|traduza|traduz"
    r"|resum[ae]|corrija"
    r"|traduci|correggi|riassumi)\b[^:]*(?::|\b(?:this|these|following|below|folgende\w*|diese\w*|suivant\w*"
    r"|siguiente\w*|seguinte\w*"
    r"|seguente)\b)|(?:correct|improve|polish|shorten|edit|review|check|here is|here's|this is|hier ist|voici"
    r"|aquí está|ecco)\b"
    r"[^:]*\b(?:text|(?<!my )e-?mail|(?<!my )mail|letter|essay|paragraph|sentence|message|article|poem|story"
    r"|novel|excerpt|transcript|draft|grammar|brief|aufsatz|lettre|texte|texto|carta|testo|lettera)\b[^:]*:)",
)
_CONFIRMATION = re.compile(
    r"^(?:yes|yep|yeah|correct|exactly|right|that's right|indeed|ja|genau|stimmt|richtig|oui|exact(?:ement)?"
    r"|tout à fait|sí|exacto|correcto|así es|sim|exato|certo|isso mesmo|sì|esatto|giusto)\b(?!.{80})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A part of a message, and the reason why it is no fact; empty if it is one."""

    turn: int  # position of the message, from 0
    role: Role
    text: str
    reason: str = ""


def read_facts(messages: Sequence[tuple[Role, str]]) -> Iterator[Statement]:
    """Split a conversation into statements and yield each with its judgement.

    >>> [each.text for each in read_facts([(Role.USER, "Hi! I'm allergic to penicillin. What can I take?")])]
    ['Hi!', "I'm allergic to penicillin.", 'What can I take?']
    >>> [each.reason for each in read_facts([(Role.USER, "Hi! I'm allergic to penicillin. What can I take?")])]
    ['small talk', '', 'a question']
    """
    spoken = " ".join(text[:MAX_READ_CHARS] for role, text in messages if role is Role.USER)
    usual = _find_language(spoken)
    said: set[str] = set()
    for turn, (role, text) in enumerate(messages):
        if role is Role.USER:
            yield from _read_message(turn, role, text, usual)
            said |= set(terms(text))
        elif role is Role.ASSISTANT:
            answer = next((text for role, text in messages[turn + 1 : turn + 2] if role is Role.USER), "")
            is_confirmed = _CONFIRMATION.match(answer) and not _RESERVATION.search(answer)
            is_confirmed = bool(is_confirmed) and "?" not in text and "？" not in text
            yield from _read_answer(turn, text, usual, said, is_confirmed=is_confirmed)


def find_unfit(text: str) -> str:
    """Return the reason why a text cannot be a fact, whoever worded it; empty if it can.

    >>> find_unfit("What is my name?"), find_unfit("Thanks!"), find_unfit("Likes tea")
    ('a question', 'small talk', '')
    """
    if is_question(text) or _UNSPACED_QUESTION.search(text):
        return QUESTION
    language = _find_language(text)
    if language is not None and cues.FACTS[language.code].patterns["asking"].match(_lower(_OPENING.sub("", text))):
        return QUESTION
    return SMALL_TALK if chatter.is_small_talk(text) else ""


def _read_message(turn: int, role: Role, text: str, usual: Lexicon | None) -> Iterator[Statement]:
    body = _QUOTED.sub("", _FENCE.sub("", text[:MAX_READ_CHARS]))
    if role is Role.ASSISTANT and is_long_answer(text):
        yield Statement(turn=turn, role=role, text=f"{body[:80]}…", reason=OWN_WORDS)
        return
    if _is_pasted(body, usual):
        yield Statement(turn=turn, role=role, text=f"{body[:80]}…", reason=PASTED)
        return
    for sentence in _split_sentences(body):
        if role is Role.USER and _TASK.match(_lower(sentence[:MAX_TASK_CHARS])):
            # The rest of the message is what to work on, not what the speaker says.
            yield Statement(turn=turn, role=role, text=f"{sentence[:80]}…", reason=PASTED)
            return
        if reason := find_unfit(sentence):
            # What a question rests on may be a fact: "I'm vegan, what can I eat there?"
            yield from _read_premise(turn, role, sentence, usual) if reason == QUESTION else ()
            yield Statement(turn=turn, role=role, text=sentence, reason=reason)
        else:
            yield from _read_sentence(turn, role, sentence, _find_language(sentence) or usual)


def _is_pasted(text: str, language: Lexicon | None) -> bool:
    """Return True if a message is long and nobody speaks of themselves in it."""
    words = _WORD.findall(_lower(text))
    own = language.first_person if language is not None else frozenset[str]()
    return len(words) > LONG_WORDS and sum(word in own for word in words) < PERSONAL_SHARE * len(words)


def _read_premise(turn: int, role: Role, sentence: str, usual: Lexicon | None) -> Iterator[Statement]:
    """Yield the facts in the clauses before the last of a question."""
    language = _find_language(sentence) or usual
    clauses = _split_clauses(sentence, language)
    if len(clauses) < 2 or language is None or _TAG.match(clauses[-1]):
        return
    premise = sentence[: sentence.rindex(clauses[-1])].rstrip(" ,;–-(")
    if not set(_lower(premise).split()[:1]) & language.question_words:
        yield from (each for each in _read_sentence(turn, role, premise, language) if not each.reason)


def _read_sentence(turn: int, role: Role, sentence: str, language: Lexicon | None) -> Iterator[Statement]:
    """Yield the facts of a sentence, each the longest run of clauses that belong together, or the sentence."""
    if _UNSPACED.search(sentence):
        reason = "" if _is_unspaced_fact(sentence) else UNSURE
        yield Statement(turn=turn, role=role, text=sentence, reason=reason)
        return
    bare = _OPENING.sub("", sentence)
    if language is None or not bare:
        yield Statement(turn=turn, role=role, text=sentence, reason=UNKNOWN_LANGUAGE if bare else SMALL_TALK)
        return
    if _UNWANTED.match(_lower(bare)):
        yield Statement(turn=turn, role=role, text=bare[:MAX_FACT_CHARS], reason=REQUEST)
        return
    if len(bare) > MAX_FACT_CHARS:
        yield Statement(turn=turn, role=role, text=f"{bare[:80]}…", reason=TOO_LONG)
        return
    reason = _judge(bare, language, role)
    if not reason:
        yield Statement(turn=turn, role=role, text=_cut_tail(bare, language, role))
        return
    for part in _split_links(bare, language) if reason != SMALL_TALK else [bare]:
        yield Statement(turn=turn, role=role, text=part.rstrip(" ,"), reason=_judge(part, language, role) and reason)


def _cut_tail(fact: str, language: Lexicon, role: Role) -> str:
    """Cut off clauses at the end that ask or wish, if the rest is a fact without them: "I'm vegan and I need ideas"."""
    *_, last = parts = _split_links(fact, language)
    rest = fact[: fact.rindex(last)].rstrip(" ,")
    if len(parts) > 1 and _judge(last, language, role) and not _judge(rest, language, role):
        return _cut_tail(rest, language, role)
    return fact


def _read_answer(
    turn: int, text: str, usual: Lexicon | None, said: set[str], *, is_confirmed: bool
) -> Iterator[Statement]:
    """Yield the statements of an assistant's message."""
    for each in _read_message(turn, Role.ASSISTANT, text, usual):
        language = _find_language(each.text) or usual
        words = set(terms(each.text))
        if each.reason in (QUESTION, SMALL_TALK):
            yield each
        elif words and len(words & said) >= REPEATED * len(words):
            yield Statement(turn=turn, role=each.role, text=each.text, reason=RESTATED)
        elif language is not None and (_is_promise(each.text, language) or (is_confirmed and not each.reason)):
            yield Statement(turn=turn, role=each.role, text=each.text)
        else:
            yield Statement(turn=turn, role=each.role, text=each.text, reason=OWN_WORDS)


def _judge(text: str, language: Lexicon, role: Role) -> str:
    """Return the reason why a clause is no fact; empty if it is one."""
    patterns = cues.FACTS[language.code].patterns
    lowered = _lower(_OPENING.sub("", text))
    words = _WORD.findall(lowered)
    if chatter.read_text(text).is_chatter:
        return SMALL_TALK
    category = find_category_of_sentence(text)
    if category is Category.EXPLICIT and len(words) > MIN_WORDS:
        return ""
    if patterns["asking"].match(lowered):
        return QUESTION
    if patterns["request"].match(lowered):
        return "" if patterns["standing"].search(lowered) and len(words) > MIN_WORDS else REQUEST
    has_predicate = any(patterns[name].search(lowered) for name in ("predicate", "lasting", "self_words", "subject"))
    is_short = len(words) < MIN_WORDS and not all(patterns[name].search(lowered) for name in ("lasting", "self_words"))
    if is_short or not has_predicate or patterns["unreal"].match(lowered) or _CODE.search(text):
        return UNSURE
    return "" if _count_points(text, lowered, words, language, role, category) >= ENOUGH else UNSURE


def _count_points(
    text: str, lowered: str, words: Sequence[str], language: Lexicon, role: Role, category: Category | None
) -> int:
    """Count what speaks for a lasting fact, less what speaks against it."""
    patterns = cues.FACTS[language.code].patterns
    has = {name: bool(pattern.search(lowered)) for name, pattern in patterns.items()}
    is_decision = category is Category.DECISION
    has_date = not language.dates.isdisjoint(words)
    has_name = not language.has_capital_nouns and _NAME.search(text) is not None
    anchors = bool(_NUMBER.search(text)) + has_date + has_name
    # "Then I'll sort the files" is a plan of the moment; a promise says to whom, when or how much.
    is_promise = has["promise"] and not has["trivial"] and anchors > 0
    is_plan = has["promise"] and anchors == 0
    anchors += not language.relations.isdisjoint(words)
    # "Your contract", said by an assistant, is the user's.
    is_to_you = not language.second_person.isdisjoint(words)
    is_about = has["self_words"] or has["others"] or (is_to_you and role is Role.ASSISTANT)
    # A habit or a decision says most; who and what it is about says the rest.
    points = 2 * (has["lasting"] or is_decision) + is_about + min(anchors, 2)
    # "The warehouse in Leeds has no forklift": a statement about something definite.
    has_verb = has["predicate"] or has["lasting"]
    points += 2 * (has["subject"] and (has_verb or anchors > 1))
    points += has_verb and not has["subject"] and _has_name_first(text, language)
    points += is_promise + has["standing"]
    points -= 2 * (has["passing"] and not has["standing"]) + 4 * has["hedge"] + 2 * is_plan + 3 * has["trivial"]
    points -= has["pointing"] + 2 * (is_to_you and role is Role.USER and not is_promise)
    return points - 3 * (category is Category.ERROR)


def _has_name_first(text: str, language: Lexicon) -> bool:
    """Return True if a statement seems to start with a name."""
    first = text.split(maxsplit=1)[0].strip(",.!").lower().removesuffix("'s")
    known = (language.common, language.reactions, language.light, language.question_words)
    return not language.has_capital_nouns and text[0].isupper() and not any(first in each for each in known)


def _is_promise(text: str, language: Lexicon) -> bool:
    """Return True if an assistant promises something for a certain time, or in numbers."""
    patterns, lowered = cues.FACTS[language.code].patterns, _lower(text)
    is_anchored = _NUMBER.search(text) is not None or not language.dates.isdisjoint(_WORD.findall(lowered))
    return is_anchored and bool(patterns["promise"].search(lowered)) and not patterns["trivial"].search(lowered)


def _is_unspaced_fact(sentence: str) -> bool:
    is_about = cues.UNSPACED_FACT.search(sentence) is not None and cues.UNSPACED_OTHER.search(sentence) is None
    return is_about and len(sentence) >= MIN_UNSPACED_CHARS


def _split_sentences(text: str) -> Iterator[str]:
    pending = ""
    for part in _SENTENCE.split(text):
        pending = f"{pending} {part}".strip() if pending else part.strip()
        if pending and not _ABBREVIATION.search(pending):
            yield pending
            pending = ""
    if pending:
        yield pending


def _split_clauses(sentence: str, language: Lexicon | None) -> list[str]:
    return [part for piece in _CLAUSE.split(sentence) for part in _split_links(piece, language) if part]


def _split_links(text: str, language: Lexicon | None) -> list[str]:
    """Split at conjunctions that start a clause with a subject of its own; they go with that clause."""
    if language is None:
        return [text]
    return [part for part in cues.FACTS[language.code].patterns["link"].split(text) if part]


def _lower(text: str) -> str:
    return text.lower().replace("’", "'")


def _find_language(text: str) -> Lexicon | None:
    """Return the language of a text; of one too short to tell, the first in which somebody speaks of themselves."""
    lowered = _lower(text)
    found = find_language(lowered, _WORD.findall(lowered))
    if found is not None or len(text) > MAX_SHORT_CHARS:
        return found
    for language in LEXICONS:
        patterns = cues.FACTS[language.code].patterns
        if patterns["self_words"].search(lowered) and patterns["lasting"].search(lowered):
            return language
    return None
