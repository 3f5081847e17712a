"""Decide in one pass over a text which rules can apply to it at all.

Most texts contain none of the several hundred words and prefixes that rules start from. One automaton finds all of
them in the time that Python needs to search for a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import re2


class PatternSet:
    """Set of regular expressions that are searched together. Each has a name; several may share one."""

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        options = re2.Options()
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        self._names: list[str] = []
        for name, pattern in patterns:
            self._set.Add(pattern)
            self._names.append(name)
        self._set.Compile()

    @classmethod
    def of_literals(cls, texts: Iterable[str]) -> PatternSet:
        """Build a set that finds each of `texts` literally, by its own name."""
        return cls((text, re2.escape(text)) for text in dict.fromkeys(texts))

    def find(self, text: str) -> frozenset[str]:
        """Return the names of the patterns that occur in `text`.

        >>> sorted(PatternSet([("digit", "[0-9]"), ("dash", "-"), ("dot", "[.]")]).find("2026-11-17"))
        ['dash', 'digit']
        """
        # Half of a surrogate pair cannot be encoded, and is part of no credential.
        found: Sequence[int] | None = self._set.Match(text.encode(errors="replace"))
        return frozenset(self._names[index] for index in found or ())
