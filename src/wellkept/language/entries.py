"""Form of a language's word lists, and their loader. The lists are in `<code>.toml`.

A cue is a pattern over one sentence in lower case with straight apostrophes. It is tried only if one of its trigger
words occurs, and it counts only without a blocker shortly before it in the same clause ("not", "if", "almost").
Patterns have no unbounded repetition, so matching takes linear time.

In a table of cues a line is `triggers: pattern`, or `triggers & words: pattern` if one of these words must occur, too.
A trigger is a word, or letters anywhere in the sentence after `*`. An indented line continues the pattern above it, and
`<NAME>` inserts a part.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

SIGN = "*"
"""Start of a trigger that is no whole word."""


@dataclass(frozen=True, eq=False)
class Cue:
    """One pattern, the words that cancel it when they stand before it, and those of which it contains at least one."""

    source: str
    blockers: frozenset[str]
    needs: frozenset[str] = frozenset()

    def may_match(self, words: set[str]) -> bool:
        """Return False if the pattern cannot match a sentence of these words."""
        return not self.needs or not self.needs.isdisjoint(words)

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
    fillers: frozenset[str] = frozenset()  # words that do not change what a statement says
    has_capital_nouns: bool = False  # a capital letter does not mark a name
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the file, with cues that are parsed on demand

    def parse_cues(self, name: str) -> CueTable:
        """Return the cues that express `name`."""
        parts = {key: _join_lines(part) for key, part in self.source.get("parts", {}).items()}
        tables = self.source["cues"].get(name, ())
        return merge_cues(
            parse_cues(each["table"], _add_words(each.get("blockers", ""), self._lists), parts) for each in tables
        )

    @property
    def _lists(self) -> Mapping[str, frozenset[str]]:
        return _read_lists(self.source["words"])


def load_lexicon(code: str) -> Lexicon:
    """Load the word lists of a language."""
    source = tomllib.loads(Path(__file__).with_name(f"{code}.toml").read_text("utf-8"))
    lists = _read_lists(source["words"]) | {name: split_phrases(text) for name, text in source["phrases"].items()}
    known = {each.name for each in fields(Lexicon)}
    return Lexicon(
        code=code,
        marks=source.get("marks", ""),
        has_capital_nouns=source.get("has_capital_nouns", False),
        source=source,
        **{name: words for name, words in lists.items() if name in known},
    )


def _read_lists(texts: Mapping[str, str]) -> dict[str, frozenset[str]]:
    lists: dict[str, frozenset[str]] = {}
    for name, text in texts.items():
        lists[name] = _add_words(text, lists)
    return lists


def _add_words(text: str, lists: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the words of a list, in which `+name` adds another list and `-word` removes a word."""
    words, removed = set[str](), set[str]()
    for word in text.split():
        if word[0] == "+":
            words |= lists[word[1:]]
        elif word[0] == "-":
            removed.add(word[1:])
        else:
            words.add(word)
    return frozenset(words - removed)


def _join_lines(text: str) -> str:
    """Return a text of several lines as one; a break before an alternative vanishes, others become spaces."""
    return text.strip("\n").replace("\n|", "|").replace("\n", " ")


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
        triggers, pattern = (fill_parts(part, parts or {}) for part in line.split(": ", 1))
        triggers, _, needs = triggers.partition(" & ")
        cue = Cue(pattern, known, frozenset(needs.split()))
        for trigger in triggers.split():
            if trigger.startswith(SIGN):
                by_sign.append((trigger.removeprefix(SIGN), cue))
            else:
                by_trigger.setdefault(trigger, []).append(cue)
    return CueTable(by_trigger, by_sign, frozenset(by_trigger))


def fill_parts(template: str, parts: Mapping[str, str]) -> str:
    """Replace each `<NAME>` by the part of this name."""
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
