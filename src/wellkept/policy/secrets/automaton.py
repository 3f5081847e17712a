"""Search many words and patterns in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import re2

LONGER = {
    ".": r"\.\S{6}\.",
    "/": r"/\S{4}",
    "sk": "(?i)sk[0-9a-f]{4}",
    "ac": "(?i)ac[0-9a-f]{4}",
    "pat": "(?i)pat[a-z0-9]{4}",
    "://": r"://[^\s/]*@",
    ":": r"(?i)[a-z]:\S{5}",
}
"""Keys that many texts contain, with what follows them in every credential."""


class PatternSet:
    """Set of keys, and of patterns by name, that are searched together, whatever their case."""

    def __init__(self, keys: Iterable[str], patterns: Mapping[str, str] = MappingProxyType({})) -> None:
        options = re2.Options()
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        sources = {**{key: LONGER.get(key) or f"(?i){re2.escape(key)}" for key in keys}, **patterns}
        self._names = list(sources)
        for source in sources.values():
            self._set.Add(source)
        self._set.Compile()

    def find(self, text: str) -> frozenset[str]:
        """Return the keys that occur in `text`, and the names of the patterns that do.

        >>> sorted(PatternSet(["key", "dash"], {"digit": "[0-9]"}).find("KEY 2026"))
        ['digit', 'key']
        """
        # Half of a surrogate pair cannot be encoded, and is part of no credential.
        found: Sequence[int] | None = self._set.Match(text.encode(errors="replace"))
        return frozenset([self._names[index] for index in found]) if found else _NOTHING


_NOTHING: frozenset[str] = frozenset()
