"""Shapes of credentials, read from `rules.toml`, and tests that tell random keys from words, names and placeholders.

Keys are random, so their characters often change class: upper case after lower case, digits next to letters. Words,
CamelCase names, slugs and paths hardly ever do. Counting these changes is cheap and needs no tables.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from wellkept.program import FORMER_NAME
from wellkept.secrets.rules_text import REMOVED, Patterns, fill_in, fold

MAX_EXAMINED_CHARS = 256
"""Number of leading characters by which a run is judged; more would not change the result."""

MAX_KEY_CHARS = 256
"""Maximum length a pattern reads from one start, so that many starts in one long run stay cheap."""

MIN_DISTINCT_CHARS = 5
"""Minimum number of distinct characters; `xxxxxxxx`, `00000000` and `abababab` are masks."""

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


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern: most of hundreds are never needed by a short program."""
        return re.compile(self.source)


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


_SYMBOL_INSIDE = re.compile(r"[A-Za-z0-9][!#$%&*+^~?]")
# "John Doe" in base64 at the place where jwt.io has it.
_EXAMPLE_NAME = "IkpvaG4gRG9l"
_SINGLE_CODE = re.compile(r"[a-z]+\d{1,3}[a-z]?|[^0-9]+|\d{6}|20\d{6}|\d{3}[- ]\d{3}|(?:19|20)\d\d[- ](?:19|20)\d\d")
_OPEN_END = re.compile(r"(\{\d+),\}")
MIN_BODY_CHARS = 16
MIN_DIGITS = 4
MIN_SEED_WORDS = 8


def _is_symbolic(value: str) -> bool:
    """Return True for `Kiwi!Latch51`, but not for `agent-forwarding` or `id_ed25519`."""
    return (
        is_stated_password(value)
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and _SYMBOL_INSIDE.search(value) is not None
    )


def _is_option_value(value: str) -> bool:
    """Return True for a password right after `-p`; `-prod` and `-port` are other options."""
    is_word = value.isalpha() and count_class_changes(value) < 3
    return is_stated_password(value) and not is_word and not value.isdigit()


def _basic_password(value: str) -> str:
    """Decode the password of base64 `name:password`; return an empty string for anything else."""
    try:
        name, _, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password if name.isprintable() and password.isprintable() else ""


def _is_basic(value: str) -> bool:
    password = _basic_password(value)
    return bool(password) and is_stated_password(password)


def _is_bearer(value: str) -> bool:
    if is_placeholder(value) or is_variable(value):
        return False
    return (count_class_changes(value) >= 2 or value.count(".") == 2) and any(c.isdigit() for c in value)


CHECKS: Mapping[str, Callable[[str], bool]] = {
    "any": lambda body: True,
    "random": is_random,
    # Not a hash in lower case that happens to begin like a key.
    "mixed-case": lambda body: is_random(body) and body.lower() != body != body.upper(),
    "real": is_real,
    "stated": is_stated_password,
    "aws-id": lambda body: is_real(body) and any(c.isdigit() for c in body),
    "four-digits": lambda body: is_real(body) and sum(c.isdigit() for c in body) >= MIN_DIGITS,
    "bearer-of-twitter": lambda body: is_random(body.lstrip("Aa")),
    "symbolic": _is_symbolic,
    "option": _is_option_value,
    "basic": _is_basic,
    "docker": lambda value: _is_basic(value) if _basic_password(value) else is_random(value),
    "bearer": _is_bearer,
    # Not the token that most documentation shows, of John Doe.
    "jwt": lambda body: is_random(body) and _EXAMPLE_NAME not in body,
    "seed-phrase": lambda words: len(set(words.split())) >= MIN_SEED_WORDS,
    # A single number of three digits, word or pair of years is no list of codes.
    "code-list": lambda codes: is_real(codes) and not _SINGLE_CODE.fullmatch(codes),
}
"""Tests of a matched value by their names in `rules.toml`."""


def _load_rules() -> Iterator[SecretRule]:
    source = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
    # Words are matched against folded text. "|" itself looks like an l.
    parts = {name: "|".join(map(fold, words)) for name, words in source["words"].items()}
    parts["FORMER_NAME"] = FORMER_NAME

    for name, text in source["parts"].items():
        parts[name] = fill_in(text, parts)
    for table in source["rules"]:
        yield _build_rule(table, partial(fill_in, parts=parts))


def _build_rule(table: Mapping[str, Any], fill_in: Callable[[str | Sequence[str]], str]) -> SecretRule:
    least, chars = table.get("least", MIN_BODY_CHARS), table.get("chars", "A-Za-z0-9")
    prefixes = [fill_in(prefix).lower() for prefix in table.get("prefixes", ())]
    if prefixes:
        starts = "|".join(re.escape(prefix) for prefix in sorted(prefixes, key=len, reverse=True))
        pattern = rf"(?<![A-Za-z0-9+])(?i:{starts})([{chars}]{{{least},{MAX_KEY_CHARS}}})"
        split = Split(
            prefixes=tuple(prefix.replace("-", "").replace(".", "") for prefix in prefixes),
            chars=rf"[{chars}]".replace(".", "").replace("-]", "]"),
            least=max(least, MIN_BODY_CHARS),
            size=table.get("size"),
        )
    else:
        pattern = fill_in(table["pattern"]).replace(r"[^\n]", rf"[^\n{REMOVED}]")
        pattern = _OPEN_END.sub(rf"\1,{MAX_KEY_CHARS}}}", pattern)
        split = None
    return SecretRule(
        name=table["name"],
        keys=tuple(prefixes or fill_in("|".join(table["keys"])).lower().split("|")),
        source=pattern,
        check=CHECKS[table.get("check", "random" if prefixes else "real")],
        split=split,
        hits=tuple(map(fill_in, table["hits"])),
        misses=tuple(map(fill_in, table["misses"])),
    )


RULES = tuple(_load_rules())
