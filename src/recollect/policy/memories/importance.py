"""Categorise episodes and rate their importance when they are stored, without a model.

A text is split into sentences, and each is matched against the tables of `importance_rules`. If several categories
match, the one with the longest lifetime wins: explicit, decision, task completion, error, routine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from recollect.lazy import LazyModule
from recollect.model import Role

if TYPE_CHECKING:
    from recollect.policy.memories import importance_rules as rules
else:
    rules = LazyModule("recollect.policy.memories.importance_rules")


class Category(StrEnum):
    """Category of an episode, which determines its lifetime."""

    ROUTINE = "routine"
    TASK_COMPLETION = "task_completion"
    DECISION = "decision"
    ERROR = "error"
    EXPLICIT = "explicit"


TTL: Mapping[Category, timedelta | None] = {
    Category.ROUTINE: timedelta(days=7),
    Category.TASK_COMPLETION: timedelta(days=30),
    Category.DECISION: timedelta(days=90),
    Category.ERROR: timedelta(days=14),
    Category.EXPLICIT: None,
}
"""Lifetime of each category; None: unlimited."""

CATEGORY_ALIASES = {"approval": Category.DECISION, "failure": Category.ERROR}
"""Aliases that callers use for categories."""

LOW = 0.2
"""Importance below which an episode is evicted first."""

# Importance by category or, for routine episodes, by content.
EXPLICIT = 1.0
SMALL_TALK = 0.1
QUESTION = 0.3
TOOL_OUTPUT = 0.3  # can be reproduced
ROUTINE = 0.4
PERSONAL = 0.5
WEIGHTY = 0.7  # mentions money or an approval
MONEY_BONUS = 0.1  # added to the importance of a category

BY_CATEGORY: Mapping[Category, float] = {
    Category.TASK_COMPLETION: 0.7,
    Category.DECISION: 0.8,
    Category.ERROR: 0.6,
}

MAY_INSTRUCT = frozenset({Role.USER, Role.SYSTEM})
"""Roles whose "remember this" is an instruction. Tool output is data, and an assistant only promises."""

SMALL_TALK_MAX_CHARS = 120
"""Maximum length of small talk; a longer text carries information."""

BLOCKER_REACH = 5
"""Number of words before a cue that can negate it ("we have not, as of today, decided")."""

_DIGIT = re.compile(r"[0-9]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|;\s")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CLAUSE_END = re.compile(r"[,;:–—(]| but | and then | although | though ")


def categorise(text: str, role: Role) -> Category:
    """Categorise `text` as said by `role`.

    >>> categorise("Remember that I am allergic to nuts", Role.USER)
    <Category.EXPLICIT: 'explicit'>
    >>> categorise("We decided to keep the old logo", Role.USER)
    <Category.DECISION: 'decision'>
    >>> categorise("There is no decision yet", Role.USER)
    <Category.ROUTINE: 'routine'>
    """
    if is_small_talk(text):
        return Category.ROUTINE
    found = {Category.ROUTINE}
    for sentence in _sentences(text):
        words = _WORD.findall(sentence)
        found.add(_categorise_sentence(sentence, words, role))
        if Category.EXPLICIT in found:
            break
    return max(found, key=lambda category: TTL[category] or timedelta.max)


def find_category(name: str | None) -> Category | None:
    """Return the category that a caller's name refers to; None for custom names.

    >>> find_category("error"), find_category("approval"), find_category("gossip")
    (<Category.ERROR: 'error'>, <Category.DECISION: 'decision'>, None)
    """
    if name is None:
        return None
    return CATEGORY_ALIASES.get(name) or (Category(name) if name in set(Category) else None)


def rate_importance(text: str, role: Role, category: Category) -> float:
    """Rate how much `text` matters, 0 to 1; exactly 1 for explicit requests, below `LOW` for small talk.

    >>> rate_importance("Thanks, see you tomorrow!", Role.USER, Category.ROUTINE)
    0.1
    >>> rate_importance("The board approved 40,000 EUR", Role.USER, Category.DECISION)
    0.9
    """
    if category is Category.EXPLICIT:
        return EXPLICIT
    normalized = _normalize(text)
    has_money = _has_money(normalized)
    if category in BY_CATEGORY:
        return round(BY_CATEGORY[category] + (MONEY_BONUS if has_money else 0.0), 2)
    if has_money or rules.APPROVAL.search(normalized):
        return WEIGHTY
    if is_small_talk(text):
        return SMALL_TALK
    if role is Role.TOOL_RESULT:
        return TOOL_OUTPUT
    if normalized.rstrip().endswith("?"):
        return QUESTION
    return PERSONAL if rules.PERSONAL.search(normalized) else ROUTINE


def is_small_talk(text: str) -> bool:
    """Return True if `text` is nothing but thanks, greetings and acknowledgements.

    >>> is_small_talk("Thanks Anna, see you tomorrow!"), is_small_talk("ok, deploy it")
    (True, False)
    """
    if len(text) > SMALL_TALK_MAX_CHARS:
        return False
    spelled = _WORD.findall(text.replace("’", "'"))
    words = [word.lower() for word in spelled]
    position, may_name, phrases = 0, False, 0
    while position < len(words):
        for length in range(min(rules.LONGEST_PHRASE, len(words) - position), 0, -1):
            phrase = " ".join(words[position : position + length])
            if phrase in rules.SMALL_TALK:
                position, may_name, phrases = position + length, phrase in rules.GREETINGS, phrases + 1
                break
        else:
            is_name = may_name and spelled[position][0].isupper()
            if not is_name and words[position] not in rules.COURTESIES:
                return False
            position, may_name = position + 1, False
    return phrases > 0 or not words


def _has_money(normalized: str) -> bool:
    if _DIGIT.search(normalized) and rules.MONEY.search(normalized):
        return True
    return rules.MONEY_IN_WORDS.search(normalized) is not None


def _normalize(text: str) -> str:
    """Convert to lower case, straight apostrophes and single spaces; line breaks stay."""
    lines = text.lower().replace("’", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


def _sentences(text: str) -> list[str]:
    return [part for line in _normalize(text).split("\n") for part in _SENTENCE_END.split(line) if part]


def _categorise_sentence(sentence: str, words: list[str], role: Role) -> Category:
    known = set(words)
    is_question = sentence.endswith("?")
    if role in MAY_INSTRUCT:
        if _has_cue(rules.EXPLICIT, sentence, known, rules.EXPLICIT_BLOCKERS):
            return Category.EXPLICIT
        if not is_question and _has_cue(rules.REMEMBER, sentence, known, rules.EXPLICIT_BLOCKERS):
            return Category.EXPLICIT
    if not is_question:
        if _has_cue(rules.REFUSALS, sentence, known, rules.REFUSAL_BLOCKERS):
            return Category.DECISION
        if _has_cue(rules.DECISIONS, sentence, known, rules.DECISION_BLOCKERS):
            return Category.DECISION
        has_failures = rules.COUNTED_FAILURES.search(sentence) is not None
        if not has_failures and _has_cue(rules.COMPLETIONS, sentence, known, rules.COMPLETION_BLOCKERS):
            return Category.TASK_COMPLETION
    if is_question and ((words and words[0] in rules.YES_NO_STARTS) or rules.DEFINITION.search(sentence)):
        return Category.ROUTINE
    if _has_cue(rules.FAILURES, sentence, known, rules.FAILURE_BLOCKERS):
        return Category.ERROR
    return Category.ERROR if _has_cue(rules.ERRORS, sentence, known, rules.ERROR_BLOCKERS) else Category.ROUTINE


def _has_cue(cues: rules.Cues, sentence: str, words: set[str], blockers: frozenset[str]) -> bool:
    """Return True if a cue occurs in the sentence without a blocker before it in its clause."""
    patterns = [*cues.always]
    for trigger in words & cues.by_trigger.keys():
        patterns += cues.by_trigger[trigger]
    return any(
        not _is_blocked(sentence, match.start(), blockers)
        for pattern in dict.fromkeys(patterns)
        for match in pattern.finditer(sentence)
    )


def _is_blocked(sentence: str, position: int, blockers: frozenset[str]) -> bool:
    # About 16 characters per word limit how far back the clause is searched.
    before = sentence[max(0, position - BLOCKER_REACH * 16) : position]
    clause = _CLAUSE_END.split(before)[-1]
    return not blockers.isdisjoint(_WORD.findall(clause)[-BLOCKER_REACH:])
