"""Decide if a word that prose calls a password or key is a value.

The more clearly the wording announces a value, the less evidence the value itself has to show.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from wellkept.secrets.rules_shapes import Patterns, count_class_changes, is_placeholder, is_stated_password
from wellkept.secrets.rules_text import TextView, fold

MAX_HITS = 4_000
"""Maximum number of such words in a text; the longest memory cannot hold more."""

MIN_SUFFIX_CHARS = 5
"""Minimum length of a word that may end the name of a variable without a separator, as in `PGPASSWORD=`."""

_SOURCE = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
PASSWORDS, TOKENS, PINS, DOORS, LOGINS, NEEDS_SIGN = (
    _SOURCE["phrases"][name] for name in ("passwords", "tokens", "pins", "doors", "logins", "needs_sign")
)
OTHER_KEYS, COMPOUNDED = (tuple(_SOURCE["words"][name].split()) for name in ("other_keys", "compounded"))
WEAK, WEAK_IF_LAST, DESCRIPTIONS = (
    frozenset(_SOURCE["words"][name].split()) for name in ("weak", "weak_if_last", "descriptions")
)
# Folded one by one: "|" itself looks like an l.
IS, MAYBE, FILLER, CHANGED, NEW = (
    "|".join(map(fold, _SOURCE["links"][name].replace("\n", "").split("|")))
    for name in ("is", "maybe", "filler", "changed", "new")
)
WEAK_WORDS = tuple(word for word in sorted(WEAK) if word.isalpha())
PAIR_SIGN = ":"
_P = Patterns("values")


def prepare_words(names: str) -> dict[str, None]:
    """Fold the words, longest first. The keys of a dictionary are in order and quickly looked up."""
    plain = [name.replace("|", " ").rstrip("~") for name in names.split()]
    # A capital letter may look like another one than the small letter does.
    words = {fold(form) for name in plain for form in (name, name.capitalize(), name.upper())}
    return dict.fromkeys(sorted(words, key=len, reverse=True))


PASSWORD_WORDS, TOKEN_WORDS = prepare_words(PASSWORDS), prepare_words(TOKENS)
PIN_WORDS, LOGIN_WORDS = prepare_words(PINS + DOORS), prepare_words(LOGINS)
DESCRIBING_WORDS = (*PASSWORD_WORDS, *TOKEN_WORDS, *WEAK_WORDS, *PIN_WORDS, *LOGIN_WORDS, PAIR_SIGN)


def find_words(view: TextView, words: dict[str, None], keys: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield occurrences of whole words, or of words that end a name such as `DB_PASSWORD` or `dbPassword`."""
    lower, text, hits = view.lower, view.text, 0
    if words.keys().isdisjoint(keys):
        return
    for word in words:
        at = lower.find(word) if word in keys else -1
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            before = text[at - 1] if at else " "
            if (
                not before.isalnum()
                or not before.isascii()
                or (before.islower() and text[at].isupper())
                or not word.isascii()
                or (
                    len(word) >= MIN_SUFFIX_CHARS
                    and before.isupper()
                    and text[at + len(word) : at + len(word) + 1] == "="
                )
                or (word in COMPOUNDED and before.isalpha())
                or (text.startswith("=", at + len(word)) and _P.parameter.search(text, max(0, at - 12), at))
            ):
                yield word, at
            at = lower.find(word, at + len(word))


class Certainty(Enum):
    """Certainty with which the wording announces a value, from `DB_PASSWORD=` down to a key mentioned in passing."""

    ASSIGNED = auto()
    PASSWORD = auto()
    TOKEN = auto()
    LOOSE = auto()
    LOOSEST = auto()


MIN_PASSWORD_CHARS = 4
MIN_TOKEN_CHARS = 6
MIN_LOOSE_CHARS = 6
MIN_LOOSEST_CHARS = 16

_LATIN = str.maketrans("øæœßłđıØÆŁĐ", "oaesldiOALD")
_TRAILING = ".,;:)]}>\"'`*|"
_QUOTES = "\"'`*_"


def trim_value(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip quotes around a range and punctuation after it."""
    # A parameter of a URL ends at the next ampersand.
    if "&" in text[start:end] and "=" in text[max(0, start - 1) : start]:
        end = start + text[start:end].index("&")
    while start < end and text[start] in "\"'`*(":
        start += 1
    # In a text of another script, the sentence may go on without a space.
    if start < end and text[start].isascii() and (foreign := _P.other_script.search(text, start, end)):
        end = foreign.start()
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return start, end


def is_uuid(value: str) -> bool:
    """Return True for a UUID, which only wording tells from an id."""
    return _P.uuid.fullmatch(value) is not None


def is_value(text: str, start: int, end: int, trust: Certainty, *, is_many: bool) -> bool:
    """Return True if the range is a credential, given how it was announced.

    `is_many` says that several values or none in particular were announced; a bare number is then rather a count.
    """
    value = text[start:end].rstrip("!?")
    lower = value.lower()
    is_quoted = start > 0 and end < len(text) and text[start - 1] == text[end] and text[end] in "\"'`"
    # The most frequent case by far: an ordinary word.
    if (
        value.isalpha()
        and value[1:].islower()
        and lower not in WEAK
        and not is_quoted
        and trust is not Certainty.ASSIGNED
    ):
        return False
    is_mask = len(set(value)) < 3 if value.isdigit() else is_placeholder(value.ljust(5, "\0"))
    if not value or not value.translate(_LATIN).isascii() or lower in DESCRIPTIONS or is_mask:
        return False
    is_random_path = (
        "/" in value
        and not value.startswith(("arn:", "aws:"))
        and len(value) >= 20
        and count_class_changes(value) >= 0.2 * len(value)
    )
    if _P.regex.search(value) or (
        _P.structured.fullmatch(value) and not _P.uuid.fullmatch(value) and not is_random_path
    ):
        return False
    if _P.tech.fullmatch(value) or _P.odd_words.fullmatch(value) or _P.unit.fullmatch(value):
        return False
    if _P.product_key.fullmatch(value) and _P.generic.search(text, max(0, start - 80), end + 60):
        return False
    is_last = (
        end >= len(text) or not text[end : end + 6].lstrip(_QUOTES + ").!,; \t")[:1].isalnum() or text[end] in ".,;\n"
    )
    if lower in WEAK and (is_last or lower not in WEAK_IF_LAST):
        return (trust is not Certainty.LOOSEST and trust is not Certainty.TOKEN) or any(c.isdigit() for c in value)
    # An exclamation mark after letters and digits is part of the password.
    if end - start > len(value) and trust is Certainty.LOOSE and any(c.isdigit() for c in value):
        value = text[start:end]
    return _looks_secret(value, trust, is_quoted=is_quoted, is_many=is_many)


def _looks_secret(value: str, trust: Certainty, *, is_quoted: bool, is_many: bool) -> bool:
    """Return True if the characters of `value` look like a credential."""
    has_digit, has_letter = any(c.isdigit() for c in value), any(c.isalpha() for c in value)
    if trust is Certainty.ASSIGNED:
        return len(value) >= MIN_PASSWORD_CHARS and (has_digit or has_letter) and is_stated_password(value)
    if trust is Certainty.PASSWORD:
        return _is_password(value, has_digit, has_letter, is_quoted=is_quoted, is_many=is_many)
    if trust is Certainty.TOKEN:
        return (
            len(value) >= MIN_TOKEN_CHARS
            and " " not in value
            and (_is_mixed(value, has_digit, has_letter) or bool(_P.uuid.fullmatch(value)))
        )
    if trust is Certainty.LOOSE:
        is_symbolic = bool(_P.inner_symbol.search(value)) and (has_digit or any(c.isupper() for c in value[1:]))
        is_mixed = (
            has_digit
            and has_letter
            and not _P.host.fullmatch(value)
            and "/" not in value
            and _is_mixed(value, True, True)
        )
        return len(value) >= MIN_LOOSE_CHARS and (is_symbolic or is_mixed)
    return (
        len(value) >= MIN_LOOSEST_CHARS
        and not _P.uuid.fullmatch(value)
        and not _P.fingerprint.fullmatch(value)
        and has_digit
        and has_letter
        and count_class_changes(value) >= max(4, 0.15 * len(value))
    )


def _is_password(value: str, has_digit: bool, has_letter: bool, *, is_quoted: bool, is_many: bool) -> bool:
    if len(value) < MIN_PASSWORD_CHARS:
        return False
    if is_quoted and " " in value:
        return (
            not (_P.message if has_digit else _P.quoted_prose).search(value)
            and is_stated_password(value)
            and len(value) >= 8
        )
    if is_quoted and has_letter and not _P.quoted_prose.search(value):
        return True
    if has_digit and not has_letter:
        return not is_many and value.isdigit() and len(value) <= 16
    if has_digit:
        return not _is_dashed_words(value) or not is_name(value)
    return bool(_P.inner_symbol.search(value) or _P.passphrase.fullmatch(value)) or _is_jumble(value)


def _is_dashed_words(value: str) -> bool:
    """Return True for names of words and numbers such as `two-factor-auth-v2` or `prod-db-01`."""
    pieces = re.split(r"[-_.]", value)
    return len(pieces) > 1 and all(
        re.fullmatch(r"[A-Z]?[a-z]+|[A-Z]+|\d{1,4}|v\d+|[a-z]+\d", piece) for piece in pieces
    )


def is_name(value: str) -> bool:
    """Return True if dashed words name a thing, as in `prod-db-01`, and not a password such as `blue-kettle-9`."""
    return (
        _P.name.search(value) is not None
        or not re.search(r"[A-Za-z][a-z]{3}", value)
        or _P.charset.fullmatch(value) is not None
    )


def _is_jumble(value: str) -> bool:
    """Return True for random letters such as `xKqWzRbT`, but not for names such as `LastPass` or `PostgreSQL`."""
    return len(value) >= 8 and value.isalpha() and count_class_changes(value) >= max(3, 0.2 * len(value))


def _is_mixed(value: str, has_digit: bool, has_letter: bool) -> bool:
    """Return True if letters and digits alternate, or if the letters form no words."""
    if has_digit and has_letter and not _is_dashed_words(value):
        return (
            count_class_changes(value) >= 2
            or len(re.findall(r"\d", value)) >= 3
            or (count_class_changes(value) >= 1 and len(value) >= 8)
        )
    return _is_jumble(value)
