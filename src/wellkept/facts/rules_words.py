"""Words and patterns by which statements are read, one table for each language.

A pattern is matched against one sentence in lower case with straight apostrophes, and is compiled when it is first
used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wellkept.language.text import split_words, terms

FOLDER = Path(__file__).with_name("words")
NOTHING = r"(?!)"
"""Pattern that matches nothing, for what a language lacks."""

PARTS = ("starts", "patterns", "cues")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The table of one language."""

    code: str
    source: Mapping[str, Any]

    def find(self, name: str) -> re.Pattern[str]:
        """Return a pattern; one of `[starts]` matches at the start only."""
        return _compile_pattern(self.code, name)

    def has(self, name: str, text: str) -> bool:
        """Return True if a pattern occurs in a text."""
        return _compile_pattern(self.code, name).search(text) is not None

    @property
    def removed(self) -> Sequence[re.Pattern[str]]:
        """Patterns of what a statement ends or replaces, the group `x`."""
        return _compile_lines(self.code, "removed", "patterns")

    def find_slots(self, part: str) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Yield the patterns of attributes, of the user (`slots`) or of `others`, with the value in the group `v`."""
        for name in self.source.get(part, ()):
            yield from ((name, pattern) for pattern in _compile_lines(self.code, part, name))

    @property
    def relations(self) -> Mapping[str, str]:
        """The English name of each word for a relation, the same in all languages."""
        return _index_relations(self.code)


@cache
def load_words(code: str) -> Vocabulary:
    """Load the table of a language."""
    return Vocabulary(code, tomllib.loads((FOLDER / f"{code}.toml").read_text("utf-8")))


def join_lines(text: str, mark: str = "\n") -> str:
    """Join the lines of a pattern, which `mark` divides."""
    return text.strip("\n").replace(mark, "")


@cache
def load_shapes() -> Mapping[str, re.Pattern[str]]:
    """Load the forms of values: of money, dates, doses and the like."""
    source = tomllib.loads((FOLDER / "shapes.toml").read_text("utf-8"))["shapes"]
    return {name: re.compile(join_lines(pattern)) for name, pattern in source.items()}


CODES = ("en", "de", "fr", "es")


@cache
def _compile_pattern(code: str, name: str) -> re.Pattern[str]:
    source = load_words(code).source
    part = next((part for part in PARTS if name in source.get(part, {})), "")
    pattern = join_lines(source[part][name]) if part else NOTHING
    return re.compile(f"^(?:{pattern})" if part == "starts" else pattern)


@cache
def _compile_lines(code: str, part: str, name: str) -> Sequence[re.Pattern[str]]:
    lines = load_words(code).source.get(part, {}).get(name, "")
    return tuple(re.compile(line) for line in lines.splitlines() if line)


@cache
def _index_relations(code: str) -> Mapping[str, str]:
    lists = load_words(code).source.get("relations", {})
    return {word: name for name, words in lists.items() for word in words.split()}


@dataclass(frozen=True, slots=True)
class Kinds:
    """Kinds of values: phrases of stems by their first stem, each with its kind."""

    by_first: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    single: frozenset[str]

    def find(self, stems: Sequence[str]) -> frozenset[tuple[str, str]]:
        """Return the kinds named by a text, each with the value.

        >>> sorted(load_kinds().find(["pay", "direct", "debit"]))
        [('payment', 'direct debit')]
        """
        found = set()
        for place, stem in enumerate(stems):
            for phrase, kind in self.by_first.get(stem, ()):
                if tuple(stems[place : place + len(phrase)]) == phrase:
                    found.add((kind, " ".join(phrase)))
        return frozenset(found)


@cache
def load_kinds() -> Kinds:
    """Load the kinds of values, in all languages."""
    source = tomllib.loads((FOLDER / "kinds.toml").read_text("utf-8"))
    by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for kinds in (source["one"], source["many"]):
        for kind, phrases in kinds.items():
            for phrase in phrases.split(", "):
                stems = tuple(terms(phrase)) or tuple(split_words(phrase))
                by_first.setdefault(stems[0], []).append((stems, kind))
    return Kinds(by_first, frozenset(source["one"]))


@cache
def load_attributes() -> Mapping[str, frozenset[str]]:
    """Load the stems of the words by which people name an attribute."""
    source = tomllib.loads((FOLDER / "kinds.toml").read_text("utf-8"))["attributes"]
    return {name: frozenset(terms(words)) for name, words in source.items()}


@cache
def load_list(name: str) -> frozenset[str]:
    """Load a list of words, in all languages."""
    return frozenset(tomllib.loads((FOLDER / "kinds.toml").read_text("utf-8"))["lists"][name].split())


@cache
def load_names() -> frozenset[str]:
    """Load common first names, in lower case: at the start of a sentence a capital letter tells nothing."""
    return frozenset((FOLDER / "names.txt").read_text("utf-8").split())
