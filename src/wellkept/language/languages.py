"""Word lists of languages: load them, recognise the language of a text, and look words up in the right list.

The lists are in `<code>.toml`. A cue is a pattern over one sentence in lower case with straight apostrophes. It is
tried only if one of its trigger words occurs, and it counts only without a blocker shortly before it in the same clause
("not", "if", "almost"). Patterns have no unbounded repetition, so matching takes linear time.

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
from typing import Any, TypeAlias

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


__all__ = ["ANY", "LEXICONS", "find_language", "index_phrases", "match_phrase"]

LEXICONS = tuple(map(load_lexicon, ("en", "de", "fr", "es", "pt", "it")))

OTHER_WORDS = split_words(
    """
    het een niet van voor zijn maar ook deze dit naar wordt door heeft geen nog wij jij jullie hebben kan als om bij te
    dat met ik je ze aan er wel of over uit op och är inte att det som på av för till jag du vi har den ett med från
    ikke og af at jeg til fra men skal vil være eller blir ble å nie jest się że na do z w i to jak tak ale czy za od
    po dla jego był była są ve bir bu için değil ile da daha çok gibi var yok ben sen nu este și sau care cu pe din mai
    sunt un o să amb però els les és dels aquest ja on ei että se oli joka mutta kun az egy nem hogy meg volt v že jako
    jsou nebo být tidak yang dan di ini itu untuk dengan dari
    """
)
"""Function words of other languages, so that a text in Dutch is not taken for English because of "is" and "in"."""

COGNATES = split_words(
    "is in was had have we up weekend for at man her over under me so all here will best team plan test hand wind man"
)
COGNATE = 0.3
"""English words that other languages write alike, and their weight."""

MIN_SHARE = 1 / 10
"""Share of a text's words that must speak for its language."""

MAX_WORDS = 40
"""Number of words that are looked at."""


def _count_languages() -> dict[str, tuple[tuple[int, float], ...]]:
    """Map each listed word to its languages (by place) and its weight for them: a word of three counts a third."""
    known = ("common", "typical", "question_words", "relations", "dates", "reactions", "light")
    lists = [frozenset[str]().union(*(getattr(lexicon, name) for name in known)) for lexicon in LEXICONS]
    lists.append(OTHER_WORDS)
    found: dict[str, list[int]] = {}
    for place, words in enumerate(lists):
        for word in words:
            found.setdefault(word, []).append(place)
    for place, lexicon in enumerate(LEXICONS):
        for mark in lexicon.marks:
            found.setdefault(mark, []).append(place)
    return {
        word: tuple((place, (COGNATE if word in COGNATES else 1.0) / len(places)) for place in places)
        for word, places in found.items()
    }


_WEIGHTS = _count_languages()
_MARKS = frozenset(mark for lexicon in LEXICONS for mark in lexicon.marks)


def find_language(text: str, words: Sequence[str]) -> Lexicon | None:
    """Return the language of a text by its function words and letters; None if it is unknown.

    `text` and `words` are in lower case.

    >>> [find_language(text, text.split()).code for text in ("the door is open", "die tür ist nicht offen")]
    ['en', 'de']
    >>> find_language("de deur is niet open", "de deur is niet open".split()) is None
    True
    """
    scores = [0.0] * (len(LEXICONS) + 1)
    for word in words[:MAX_WORDS]:
        for place, weight in _WEIGHTS.get(word, ()):
            scores[place] += weight
    if not text.isascii():
        for mark in _MARKS.intersection(text):
            for place, weight in _WEIGHTS[mark]:
                scores[place] += weight
    best = max(scores)
    if best <= 0 or best < MIN_SHARE * min(len(words), MAX_WORDS) or scores.count(best) > 1:
        return None
    place = scores.index(best)
    return LEXICONS[place] if place < len(LEXICONS) else None


def _unite(name: str) -> frozenset[str]:
    return frozenset[str]().union(*(getattr(lexicon, name) for lexicon in LEXICONS))


_UNITED_LISTS = """
    common negations question_words first_person second_person relations dates reactions light phrases greetings
    small_talk courtesies
""".split()
_UNITED: dict[str, Any] = {name: _unite(name) for name in _UNITED_LISTS}
ANY = Lexicon(code="", **_UNITED | {"small_talk": _UNITED["small_talk"] | _UNITED["greetings"]})
"""All lists in one, for texts too short to tell their language."""

PhraseIndex: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""Words of phrases by their first word, longest first."""


def index_phrases(phrases: Collection[str]) -> PhraseIndex:
    """Index phrases for `match_phrase`."""
    index: dict[str, list[list[str]]] = {}
    for words in sorted((phrase.split() for phrase in phrases), key=len, reverse=True):
        index.setdefault(words[0], []).append(words)
    return index


def match_phrase(words: Sequence[str], position: int, phrases: PhraseIndex) -> int:
    """Return the number of words of the longest phrase that starts at `position`; 0 if none does.

    >>> match_phrase(["oh", "i", "see"], 1, index_phrases(["i see", "i"]))
    2
    """
    for phrase in phrases.get(words[position], ()):
        if words[position : position + len(phrase)] == phrase:
            return len(phrase)
    return 0
