"""Form of a language's word lists.

A cue is a pattern over one sentence in lower case with straight apostrophes. It is tried only if one of its trigger
words occurs, and it counts only without a blocker shortly before it in the same clause ("not", "if", "almost").
Patterns have no unbounded repetition, so matching takes linear time.

In a table of cues a line is `triggers: pattern`. A trigger is a word, or letters anywhere in the sentence after `*`. An
indented line continues the pattern above it, and `<NAME>` inserts a part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

SIGN = "*"
"""Start of a trigger that is no whole word."""


@dataclass(frozen=True)
class Cue:
    """One pattern, and the words that cancel it when they stand before it."""

    source: str
    blockers: frozenset[str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern. Compiling all of them takes far longer than loading the lists."""
        return re.compile(self.source)


@dataclass(frozen=True, slots=True)
class CueTable:
    """Cues that express one thing."""

    by_trigger: Mapping[str, Sequence[Cue]]
    by_sign: Sequence[tuple[str, Cue]] = ()  # cues that are tried if the sentence contains these letters
    triggers: frozenset[str] = frozenset()

    def may_match(self, text: str, words: set[str]) -> bool:
        """Return False if no cue can match a text of these words."""
        return not self.triggers.isdisjoint(words) or any(sign in text for sign, _ in self.by_sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Word lists of one language, in lower case with straight apostrophes."""

    code: str
    common: frozenset[str]  # function words; they also tell the language
    typical: frozenset[str] = frozenset()  # other words that tell the language
    marks: str = ""  # letters and signs that tell the language
    negations: frozenset[str]
    question_words: frozenset[str]  # first words of questions
    first_person: frozenset[str]  # a speaker's words for themselves
    second_person: frozenset[str]
    relations: frozenset[str]  # people, pets and employers that a statement can be about
    dates: frozenset[str]  # names of days and months
    reactions: frozenset[str]  # words that react or judge, and state nothing
    light: frozenset[str] = frozenset()  # other words too general to state something
    phrases: frozenset[str]  # reactions of several words, which may contain "I"
    greetings: frozenset[str]  # small talk that a name may follow
    small_talk: frozenset[str]  # phrases that are nothing but courtesy
    courtesies: frozenset[str] = frozenset()  # words that add nothing to small talk: "thanks *for your help*"
    fillers: frozenset[str]  # words that do not change what a statement says
    has_capital_nouns: bool = False  # a capital letter does not mark a name
    cues: Mapping[str, CueTable] = field(default_factory=dict)  # by what they express; English has a module for them


def split_words(*lists: str) -> frozenset[str]:
    """Return the words of lists that are separated by white space."""
    return frozenset(word for words in lists for word in words.split())


def split_phrases(lines: str) -> frozenset[str]:
    """Return phrases that are separated by commas."""
    return frozenset(phrase.strip() for phrase in " ".join(lines.split()).split(","))


def parse_cues(table: str, blockers: Collection[str], parts: Mapping[str, str] | None = None) -> CueTable:
    """Parse a table of cues.

    >>> cues = parse_cues("decided: \\\\bdecided to\\\\b", {"not"})
    >>> cues.by_trigger["decided"][0].pattern.pattern
    '\\\\bdecided to\\\\b'
    """
    known, by_trigger, by_sign = frozenset(blockers), dict[str, list[Cue]](), list[tuple[str, Cue]]()
    for line in table.strip("\n").replace("\n    ", "").splitlines():
        triggers, pattern = (_fill(part, parts or {}) for part in line.split(": ", 1))
        cue = Cue(pattern, known)
        for trigger in triggers.split():
            if trigger.startswith(SIGN):
                by_sign.append((trigger.removeprefix(SIGN), cue))
            else:
                by_trigger.setdefault(trigger, []).append(cue)
    return CueTable(by_trigger, by_sign, frozenset(by_trigger))


def _fill(template: str, parts: Mapping[str, str]) -> str:
    # Twice, because parts contain parts.
    for name, part in (*parts.items(), *parts.items()):
        template = template.replace(f"<{name}>", part)
    return template


def merge_cues(tables: Iterable[CueTable]) -> CueTable:
    """Merge tables of cues into one."""
    merged, signs = dict[str, list[Cue]](), list[tuple[str, Cue]]()
    for table in tables:
        signs += table.by_sign
        for trigger, cues in table.by_trigger.items():
            merged.setdefault(trigger, []).extend(cues)
    return CueTable(merged, signs, frozenset(merged))
