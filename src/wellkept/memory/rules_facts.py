"""Read lasting facts, preferences, decisions and promises out of a conversation, without a model.

A message is split into sentences, and these into clauses. A clause is kept, in its own words, if enough speaks for a
lasting fact: a state or a habit, the speaker or somebody known, a name, a number, a date. Questions, requests, small
talk, passing states and guesses are left out. Of an assistant, only promises and decisions with a date or a number are
kept, and what the user confirms; not what repeats the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wellkept.language import cues
from wellkept.language.entries import Lexicon
from wellkept.language.languages import LEXICONS, find_language
from wellkept.language.text import is_question, terms
from wellkept.memory import rules_chatter as chatter
from wellkept.memory import rules_fact_signs as signs
from wellkept.memory import rules_fact_slots as fact_slots
from wellkept.memory.rules_categories import Category
from wellkept.memory.rules_gist import is_long_answer
from wellkept.memory.rules_importance import find_category_of_sentence
from wellkept.model import Role

MAX_READ_CHARS = 8_000
"""Characters of a message that are read; more is pasted, not said."""

MAX_FACT_CHARS = 500
MAX_TASK_CHARS = 200
"""Characters in which a sentence must announce a text to work on; matching takes cubic time."""

LONG_WORDS = 100
VERY_LONG_WORDS = 200
LEAST_OWN = 1 / 25
LEAST_OWN_VERY_LONG = 1 / 12
"""Words from which a message may be pasted, and the share of words for the speaker from which it is not: lyrics,
articles and transcripts have an "I", too, but fewer."""

MIN_WORDS = 3
MAX_SHORT_CHARS = 40
MAX_UNTOLD_CHARS = 120
"""Characters of a sentence that is taken to be in the language of the conversation if it does not show its own."""

MIN_UNSPACED_CHARS = 6
MAX_SUBJECT_CHARS = 25
"""Characters within which a statement names the speaker if it is about them."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClause:
    """A part of a message, and the reason why it is no fact; empty if it is one."""

    turn: int  # position of the message, from 0
    role: Role
    text: str
    reason: str = ""


def read_facts(messages: Sequence[tuple[Role, str]]) -> Iterator[JudgedClause]:
    """Split a conversation into statements and yield each with its judgement.

    >>> [each.text for each in read_facts([(Role.USER, "Hi! I'm allergic to penicillin. What can I take?")])]
    ['Hi!', "I'm allergic to penicillin.", 'What can I take?']
    >>> [each.reason for each in read_facts([(Role.USER, "Hi! I'm allergic to penicillin. What can I take?")])]
    ['small talk', '', 'a question']
    """
    spoken = " ".join(text[:MAX_READ_CHARS] for role, text in messages if role is Role.USER)
    usual = _find_language(spoken)
    is_own_world = usual is None or _is_own_world(_lower(spoken), usual)
    said: set[str] = set()
    for turn, (role, text) in enumerate(messages):
        if role is Role.USER:
            for each in _read_message(turn, role, text, usual):
                yield replace(each, reason=UNSURE) if not is_own_world and _is_about_others(each, usual) else each
            said |= set(terms(text))
        elif role is Role.ASSISTANT:
            answer = next((text for role, text in messages[turn + 1 : turn + 2] if role is Role.USER), "")
            is_confirmed = signs.CONFIRMATION.match(answer) and not signs.RESERVATION.search(answer)
            is_confirmed = bool(is_confirmed) and "?" not in text and "？" not in text
            yield from _read_answer(turn, text, usual, said, is_confirmed=is_confirmed)


def find_unfit(text: str) -> str:
    """Return the reason why a text cannot be a fact, whoever worded it; empty if it can.

    >>> find_unfit("What is my name?"), find_unfit("Thanks!"), find_unfit("Likes tea")
    ('a question', 'small talk', '')
    """
    if is_question(text) or signs.UNSPACED_QUESTION.search(text) or signs.TAG_END.search(text):
        return QUESTION
    language = _find_language(text)
    if language is not None and cues.FACTS[language.code].patterns["asking"].match(_lower(signs.OPENING.sub("", text))):
        return QUESTION
    return SMALL_TALK if chatter.is_small_talk(text) else ""


def _read_message(turn: int, role: Role, text: str, usual: Lexicon | None) -> Iterator[JudgedClause]:
    body = signs.QUOTED.sub("", signs.FENCE.sub("", text[:MAX_READ_CHARS]))
    if role is Role.ASSISTANT and is_long_answer(text):
        yield JudgedClause(turn=turn, role=role, text=f"{body[:80]}…", reason=OWN_WORDS)
        return
    if _is_pasted(body, usual):
        yield JudgedClause(turn=turn, role=role, text=f"{body[:80]}…", reason=PASTED)
        return
    is_cited = False
    for sentence in (signs.BULLET.sub("", each) for each in signs.split_sentences(body)):
        if is_cited:
            yield JudgedClause(turn=turn, role=role, text=f"{sentence[:80]}…", reason=PASTED)
            continue
        is_cited = role is Role.USER and signs.CITING.match(_lower(sentence)) is not None
        if role is Role.USER and signs.TASK.match(_lower(sentence[:MAX_TASK_CHARS])):
            # The rest of the message is what to work on, not what the speaker says.
            yield JudgedClause(turn=turn, role=role, text=f"{sentence[:80]}…", reason=PASTED)
            return
        if reason := find_unfit(sentence):
            # What a question rests on may be a fact: "I'm vegan, what can I eat there?"
            yield from _read_premise(turn, role, sentence, usual) if reason == QUESTION else ()
            yield JudgedClause(turn=turn, role=role, text=sentence, reason=reason)
        else:
            language = _find_language(sentence) or (usual if len(sentence) <= MAX_UNTOLD_CHARS else None)
            yield from _read_sentence(turn, role, sentence, language)


def _is_own_world(spoken: str, language: Lexicon) -> bool:
    """Return False if a conversation is about a story, a game or an exercise, or never about the speaker."""
    patterns = cues.FACTS[language.code].patterns
    return bool(patterns["self_words"].search(spoken)) and not patterns["works"].search(spoken)


def _is_about_others(statement: JudgedClause, language: Lexicon | None) -> bool:
    """Return True if a fact neither mentions the speaker nor asks to be kept; in a story, it is a part of that."""
    if statement.reason or language is None or fact_slots.find_slot(statement.text) is not None:
        return False
    if find_category_of_sentence(statement.text) is Category.EXPLICIT:
        return False
    patterns, lowered = cues.FACTS[language.code].patterns, _lower(statement.text)
    return not patterns["self_words"].search(lowered) and not patterns["standing"].search(lowered)


def _is_pasted(text: str, language: Lexicon | None) -> bool:
    """Return True if a message is long and its author hardly speaks of themselves in it."""
    words = signs.WORD.findall(_lower(text))
    own = language.first_person if language is not None else frozenset[str]()
    share = LEAST_OWN if len(words) <= VERY_LONG_WORDS else LEAST_OWN_VERY_LONG
    return len(words) > LONG_WORDS and sum(word in own for word in words) < share * len(words)


def _read_premise(turn: int, role: Role, sentence: str, usual: Lexicon | None) -> Iterator[JudgedClause]:
    """Yield the facts in the clauses before the last of a question."""
    language = _find_language(sentence) or usual
    clauses = _split_clauses(sentence, language)
    if len(clauses) < 2 or language is None or signs.TAG.match(clauses[-1]):
        return
    premise = signs.DEMAND.sub("", sentence[: sentence.rindex(clauses[-1])].rstrip(" ,;–-("))
    if not set(_lower(premise).split()[:1]) & language.question_words:
        yield from (each for each in _read_sentence(turn, role, premise, language) if not each.reason)


def _read_sentence(turn: int, role: Role, sentence: str, language: Lexicon | None) -> Iterator[JudgedClause]:
    """Yield the facts of a sentence, each the longest run of clauses that belong together, or the sentence."""
    if signs.UNSPACED.search(sentence):
        reason = "" if _is_unspaced_fact(sentence) else UNSURE
        yield JudgedClause(turn=turn, role=role, text=sentence, reason=reason)
        return
    bare = signs.DEMAND.sub("", signs.OPENING.sub("", sentence))
    if language is None or not bare:
        yield JudgedClause(turn=turn, role=role, text=sentence, reason=UNKNOWN_LANGUAGE if bare else SMALL_TALK)
        return
    if signs.UNWANTED.match(_lower(bare)):
        yield JudgedClause(turn=turn, role=role, text=bare[:MAX_FACT_CHARS], reason=REQUEST)
        return
    if len(bare) > MAX_FACT_CHARS:
        yield JudgedClause(turn=turn, role=role, text=f"{bare[:80]}…", reason=TOO_LONG)
        return
    reason = _judge(bare, language, role)
    if not reason:
        yield JudgedClause(turn=turn, role=role, text=_cut_tail(bare, language, role))
        return
    for part in _split_links(bare, language) if reason != SMALL_TALK else [bare]:
        text = signs.OPENING.sub("", part).rstrip(" ,") or part
        yield JudgedClause(turn=turn, role=role, text=text, reason=_judge(part, language, role) and reason)


def _cut_tail(fact: str, language: Lexicon, role: Role) -> str:
    """Cut off clauses at the end that ask or wish, if the rest is a fact without them: "I'm vegan and I need ideas"."""
    *_, last = parts = _split_links(fact, language)
    rest = fact[: fact.rindex(last)].rstrip(" ,")
    if len(parts) > 1 and _judge(last, language, role) and not _judge(rest, language, role):
        return _cut_tail(rest, language, role)
    return fact


def _read_answer(
    turn: int, text: str, usual: Lexicon | None, said: set[str], *, is_confirmed: bool
) -> Iterator[JudgedClause]:
    """Yield the statements of an assistant's message."""
    for each in _read_message(turn, Role.ASSISTANT, text, usual):
        language = _find_language(each.text) or usual
        words = set(terms(each.text))
        if each.reason in (QUESTION, SMALL_TALK):
            yield each
        elif words and len(words & said) >= REPEATED * len(words):
            yield JudgedClause(turn=turn, role=each.role, text=each.text, reason=RESTATED)
        elif language is not None and (
            _is_promise(each.text, language) or (is_confirmed and _is_to_you(each, language))
        ):
            yield JudgedClause(turn=turn, role=each.role, text=each.text)
        else:
            yield JudgedClause(turn=turn, role=each.role, text=each.text, reason=OWN_WORDS)


def _judge(text: str, language: Lexicon, role: Role) -> str:
    """Return the reason why a clause is no fact; empty if it is one."""
    patterns = cues.FACTS[language.code].patterns
    lowered = _lower(signs.OPENING.sub("", text))
    words = signs.WORD.findall(lowered)
    if chatter.read_text(text).is_chatter:
        return SMALL_TALK
    category = find_category_of_sentence(text)
    if category is Category.EXPLICIT and len(words) > MIN_WORDS and not patterns["unreal"].match(lowered):
        return ""
    if patterns["asking"].match(lowered):
        return QUESTION
    if patterns["request"].match(lowered):
        return "" if patterns["standing"].search(lowered) and len(words) > MIN_WORDS else REQUEST
    if fact_slots.find_slot(text) is not None:
        return ""
    has_predicate = any(patterns[name].search(lowered) for name in ("predicate", "lasting", "self_words", "subject"))
    is_short = len(words) < MIN_WORDS and not all(patterns[name].search(lowered) for name in ("lasting", "self_words"))
    if is_short or not has_predicate or patterns["unreal"].match(lowered):
        return UNSURE
    if signs.CODE.search(text) or signs.FORMULA.search(text) or signs.CITED.match(text):
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
    has_name = not language.has_capital_nouns and signs.NAME.search(text) is not None
    anchors = bool(signs.NUMBER.search(text)) + has_date + has_name
    # "Then I'll sort the files" is a plan of the moment; a promise says to whom, when or how much.
    # "Your contract", said by an assistant, is the user's.
    is_to_you = not language.second_person.isdisjoint(words)
    is_bound = anchors > 0 if role is Role.ASSISTANT else has_date or (is_to_you and anchors > has_name)
    is_promise = has["promise"] and not has["trivial"] and is_bound
    is_plan = has["promise"] and not is_bound
    is_definite = anchors > has_name or (has_name and (has["lasting"] or is_decision))
    anchors += not language.relations.isdisjoint(words)
    is_about = has["self_words"] or has["others"] or (is_to_you and role is Role.ASSISTANT)
    own = patterns["self_words"].search(lowered)
    # Not in "The rain made my run better".
    is_own = own is not None and own.start() < (1 if has["subject"] else MAX_SUBJECT_CHARS)
    # A habit or a decision says most; who and what it is about says the rest.
    points = 2 * (has["lasting"] or is_decision) + is_about + min(anchors, 2)
    # "The warehouse in Leeds has no forklift": a statement about something definite.
    has_verb = has["predicate"] or has["lasting"]
    points += 2 * (has["subject"] and (has_verb or anchors > 1))
    points += has_verb and not has["subject"] and _has_name_first(text, language)
    # "From now on always in German, please": without a verb it tells what to do, not what is.
    is_order = has["standing"] and not has["predicate"]
    points += is_promise + is_order
    points -= 2 * (has["passing"] and not has["standing"]) + 4 * has["hedge"] + 2 * is_plan + 3 * has["trivial"]
    # "Every fighter has a story", "Pets brighten our days": about nobody in particular.
    is_about_them = has["others"] and not has["subject"]
    points -= 2 * (not is_own and not is_about_them and not is_definite and not is_order)
    points -= 2 * has["pointing"] + 2 * (is_to_you and role is Role.USER and not is_promise)
    return points - 3 * (category is Category.ERROR)


def _has_name_first(text: str, language: Lexicon) -> bool:
    """Return True if a statement seems to start with a name."""
    first = text.split(maxsplit=1)[0].strip(",.!").lower().removesuffix("'s")
    known = (language.common, language.reactions, language.light, language.question_words)
    return not language.has_capital_nouns and text[0].isupper() and not any(first in each for each in known)


def _is_promise(text: str, language: Lexicon) -> bool:
    """Return True if an assistant promises something for a certain time, or something in numbers to the user."""
    patterns, lowered = cues.FACTS[language.code].patterns, _lower(text)
    words = signs.WORD.findall(lowered)
    is_counted = signs.NUMBER.search(text) is not None and not language.second_person.isdisjoint(words)
    is_vague = patterns["trivial"].search(lowered) or patterns["hedge"].search(lowered)
    has_date = not language.dates.isdisjoint(words) or fact_slots.has_date(lowered)
    return (has_date or is_counted) and bool(patterns["promise"].search(lowered)) and not is_vague


def _is_to_you(statement: JudgedClause, language: Lexicon) -> bool:
    """Return True if an assistant states a fact about the user."""
    return not statement.reason and not language.second_person.isdisjoint(signs.WORD.findall(_lower(statement.text)))


def _is_unspaced_fact(sentence: str) -> bool:
    is_about = cues.UNSPACED_FACT.search(sentence) is not None and cues.UNSPACED_OTHER.search(sentence) is None
    return is_about and len(sentence) >= MIN_UNSPACED_CHARS


def _split_clauses(sentence: str, language: Lexicon | None) -> list[str]:
    return [part for piece in signs.CLAUSE.split(sentence) for part in _split_links(piece, language) if part]


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
    found = find_language(lowered, signs.WORD.findall(lowered))
    if found is not None or len(text) > MAX_SHORT_CHARS:
        return found
    for language in LEXICONS:
        patterns = cues.FACTS[language.code].patterns
        if patterns["self_words"].search(lowered) and patterns["lasting"].search(lowered):
            return language
    return None
