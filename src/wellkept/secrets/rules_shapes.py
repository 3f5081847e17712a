"""Secret rules, and tests that tell random keys from words, names and placeholders.

Keys are random, so their characters often change class: upper case after lower case, digits next to letters. Words,
CamelCase names, slugs and paths hardly ever do. Counting these changes is cheap and needs no tables.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wellkept.text_cache import compile_once

MAX_EXAMINED_CHARS = 256
"""Number of leading characters by which a run is judged; more would not change the result."""

MAX_KEY_CHARS = 256
"""Maximum length a pattern reads from one start, so that many starts in one long run stay cheap."""

MIN_DISTINCT_CHARS = 5
"""Minimum number of distinct characters; `xxxxxxxx`, `00000000` and `abababab` are masks."""

REMOVED = "\ufffc"
"""Replacement for a removed credential; no pattern reaches across it."""

_PART = re.compile(r"%([A-Z_0-9]+)%")


def fill_in(text: str | Sequence[str], parts: Mapping[str, str]) -> str:
    """Return a pattern of a TOML file, which may be in pieces, with its `%PARTS%`."""
    return _PART.sub(lambda part: parts[part[1]], "".join(text))


@cache
def _load() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))


def read_table(name: str) -> Mapping[str, Any]:
    """Return a table of `patterns.toml`."""
    return _load()[name]


class Patterns:
    """The patterns of one table of `patterns.toml`, compiled on first use."""

    def __init__(self, table: str, **words: str) -> None:
        self._table = read_table(table)
        self._parts = {name: "".join(part) for name, part in read_table("parts").items()} | words

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in self._table:
            raise AttributeError(name)
        pattern = self.__dict__[name] = re.compile(fill_in(self._table[name], self._parts))
        return pattern


_P = Patterns("shapes")

_STAND_INS = frozenset(
    "user username admin root postgres mysql guest example test demo redis minioadmin tiger anonymous changeme pass123 "
    "bar xxx passwort kennwort contrasena senha clave wachtwoord".split()
) | {"open sesame"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Body of a key after its prefix, used to find keys that were split into pieces."""

    prefixes: tuple[str, ...]  # lower case, without the dashes
    chars: str  # pattern of one character of the body
    least: int
    size: int | None  # usual length; None: not fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRule:
    """One shape of credential. The last group of the pattern, or all of it, is the credential.

    Tests run `hits` and `misses`, in which `{36}` is replaced by 36 random letters and digits and `{hex:32}` by 32
    hexadecimal digits, so that no file of this project contains anything another scanner would report as a key.
    """

    name: str
    keys: tuple[str, ...]  # lower case; the pattern is tried where one occurs
    source: str  # of the pattern
    check: Callable[[str], bool]
    split: Split | None
    hits: tuple[str, ...]
    misses: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        return compile_once(self.source)


def count_class_changes(run: str) -> int:
    """Count changes of character class.

    >>> count_class_changes("AbstractProxyFactory"), count_class_changes("a7Xk2mPq9Lw4")
    (2, 8)
    """
    return len(_P.class_change.findall(run[:MAX_EXAMINED_CHARS]))


def is_placeholder(value: str) -> bool:
    """Return True if a value is a placeholder for a secret.

    >>> is_placeholder("your-api-key-here"), is_placeholder("xxxxxxxx"), is_placeholder("a7Xk2mPq9Lw4")
    (True, True, False)
    """
    head = value[:MAX_EXAMINED_CHARS].lower()
    return len(set(head)) < MIN_DISTINCT_CHARS or _P.placeholder.search(head) is not None


def is_random(body: str) -> bool:
    """Return True if the characters after a known prefix look random."""
    head = body[:MAX_EXAMINED_CHARS]
    return count_class_changes(head) >= max(3, 0.11 * len(head)) and not is_placeholder(head)


def is_real(body: str) -> bool:
    """Return True if a value of fixed shape is not a placeholder."""
    return not is_placeholder(body)


def is_variable(value: str) -> bool:
    """Return True if a value is filled in elsewhere: `$PW`, `<token>`, `{{ key }}`, `PASSWORD`."""
    return _P.variable.match(value) is not None


def is_stated_password(value: str) -> bool:
    """Return False for a stand-in of documentation where only a password can be: `user:password@`, `-u me:$PW`.

    >>> is_stated_password("mysecretpw"), is_stated_password("$PW"), is_stated_password("Falcon77")
    (False, False, True)
    """
    lower = value.lower()
    is_stand_in = lower in _STAND_INS or _P.stand_in.fullmatch(lower) is not None
    return not (is_stand_in or is_variable(value) or len(set(value)) < 3 or "…" in value)
