"""Find credentials by the words around them: "the password is …", "api key: …", "PIN 4711", "log in as ann / …".

Such a value may be anything, so the words decide where to look and its characters decide if it is a value at all:
`token: economics`, `password: required` and "the secret is to stir slowly" are prose. The more clearly the wording
announces a value, the less evidence the value itself has to show.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from wellkept.secrets.rules import count_class_changes, is_placeholder, is_stated_password
from wellkept.secrets.rules_text import Patterns, TextView, fold

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
_P = Patterns(
    "context",
    IS=IS,
    MAYBE=MAYBE,
    FILLER=FILLER,
    CHANGED=CHANGED,
    NEW=NEW,
    ACCOUNT=fold("учетк|аккаунт|пользовател|юзер|сервер|логин|почт|user|account"),
)


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


MIN_SHAPED_CHARS = 8
REACH = 200
"""Maximum distance between such a word and its value."""

MAX_WORDS_BETWEEN = 8
MAX_CHARS_BETWEEN = 90
"""Maximum distance between such a word and the verb or sign that links it to its value."""

_FIRST_SYLLABLE = "\u0530"
_NAMED_BEFORE = ("key", "token", "schlussel", "sleutel")
_VERBS_BEFORE = (" is ", " as ", " ist ", " est ", " es ", " als ", " was ", " como ", " comme ", " come ", " jako ")
_SIGNS = tuple(":=|>)-")
_PIECES = {
    size: re.compile(
        rf"[!-+\--~]{{{size}}}([ \n.-]{{1,2}})[!-+\--~]{{{size}}}(?:\1[!-+\--~]{{{size}}}){{0,12}}"
        rf"(?:\1[!-+\--~]{{1,{size - 1}}})?(?![^\s,;.])"
    )
    for size in range(3, 9)
}

_DOOR_WORDS = prepare_words(DOORS)
_NEEDS_SIGN = prepare_words(NEEDS_SIGN)
_INFLECTED = prepare_words(" ".join(name for name in (PASSWORDS + TOKENS).split() if name.endswith("~")))
_SHORT = ("pass", "pw", "pwd", "mdp")


def find_described(view: TextView, keys: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every value that is called a password, a key or a PIN.

    `keys` are the `DESCRIBING_WORDS`, among others, that occur in the text.
    """
    has_weak_word = not keys.isdisjoint(WEAK_WORDS)
    for words, rule, trust in (
        (PASSWORD_WORDS, "password", Certainty.PASSWORD),
        (TOKEN_WORDS, "token", Certainty.TOKEN),
    ):
        for word, at in find_words(view, words, keys):
            if not has_weak_word and not view.has_marks(at - REACH, at + len(word) + REACH):
                continue
            for start, end in _find_values(view, word, at, trust):
                yield rule, start, end
    yield from _find_logins(view, keys)


def _find_values(view: TextView, word: str, at: int, trust: Certainty) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the values for the word at `at`."""
    text, lower, after = view.text, view.lower, at + len(word)
    if word in _INFLECTED:
        after = _P.ending.match(lower, after).end()  # type: ignore[union-attr]
    if word.isascii() and not _P.word_end.match(text, after):
        return
    # `user:password@host` is the concern of another rule; `new Password('r0sebud')` and `Password {` are a class.
    following = text[after : after + 2]
    if following[:1] == "@" or following == " {" or (following[:1] == "(" and text.endswith("new ", 0, at)):
        return
    if word.endswith(_NAMED_BEFORE) and lower[max(0, at - 14) : at].rstrip(" _-").endswith(OTHER_KEYS):
        return
    if _P.other_meaning.match(lower, after):
        return
    found = False
    for tail, certainty in _tails(view, word, at, after, trust):
        if span := _value_in(tail, text, certainty):
            found = True
            yield span
            if trust is Certainty.PASSWORD and (other := _P.and_too.match(text, span[1])):
                start, end = trim_value(text, *other.span("value"))
                if is_value(text, start, end, Certainty.LOOSE, is_many=True):
                    yield start, end
            break
    window_at = max(0, at - 100)
    window = lower[window_at:at]
    if any(verb in window for verb in _VERBS_BEFORE) and (before := _P.before.search(window)):
        start, end = trim_value(text, window_at + before.start(1), window_at + before.end(1))
        if is_value(
            text, start, end, Certainty.PASSWORD if trust is Certainty.PASSWORD else Certainty.LOOSE, is_many=True
        ):
            yield start, end
    elif not found and trust is Certainty.PASSWORD:
        for span in _find_strong(view, at, after):
            found = True
            yield span
    if not found and not word.isascii():
        yield from _find_foreign(text, after, Certainty.LOOSEST if trust is Certainty.TOKEN else trust)


def _find_strong(view: TextView, at: int, after: int) -> Iterator[tuple[int, int]]:
    """Yield what looks like a password by itself near the word for one."""
    text = view.text
    line_at = max(text.rfind("\n", 0, at) + 1, at - 60)
    line_end = text.find("\n", after, after + 80)
    line_end = min(len(text), after + 80) if line_end < 0 else line_end
    for strong in _P.strong.finditer(text, line_at, line_end):
        start, end = trim_value(text, *strong.span())
        if is_value(text, start, end, Certainty.LOOSE, is_many=True):
            yield start, end
            return
    for shaped in _P.shaped.finditer(text, after, line_end) if _P.newly.search(view.lower, line_at, line_end) else ():
        start, end = trim_value(text, *shaped.span())
        value = text[start:end]
        is_joined = not value.isalnum() and len(value) >= MIN_SHAPED_CHARS and not is_name(value)
        if is_joined and is_value(text, start, end, Certainty.PASSWORD, is_many=True):
            yield start, shaped.end() if text[shaped.end() - 1] in "!#*" else end
            return


def _find_foreign(text: str, after: int, trust: Certainty) -> Iterator[tuple[int, int]]:
    """Yield the value after a word of another script, in which letters and digits of ours stand out."""
    line_end = text.find("\n", after, after + 60)
    for run in _P.foreign.finditer(text, after, after + 60 if line_end < 0 else line_end):
        start, end = trim_value(text, *run.span())
        value, is_near = text[start:end], start - after <= 5
        if value.isdigit():
            is_counted = not is_near or bool(_P.counted.match(text, end) or _P.year.fullmatch(value))
        else:
            is_counted = len(value) < 6 or (value.isalnum() and sum(c.isdigit() for c in value) < 2)
        if is_counted or _P.foreign_object.search(text, after, start):
            continue
        if is_value(text, start, end, trust, is_many=not is_near):
            # Letters of that script before it, and signs of a keypad after it, are part of the value.
            while start > after and text[start - 1].isalpha() and text[start - 1] < _FIRST_SYLLABLE:
                start -= 1
            yield start, end + (value.isdigit() and text[end : end + 1] in ("*", "#"))
            return


def _tails(
    view: TextView, word: str, at: int, after: int, trust: Certainty
) -> Iterator[tuple[re.Match[str], Certainty]]:
    """Yield candidate phrases after the word, likeliest first, with the certainty of their wording."""
    lower = view.lower
    loose = Certainty.LOOSE if trust is Certainty.PASSWORD else Certainty.LOOSEST
    tail = _P.sign_next.match(lower, after)
    if tail:
        is_assigned = trust is Certainty.PASSWORD and tail["link"].strip() == "=" and view.text[at].isupper()
        yield tail, Certainty.ASSIGNED if is_assigned else trust
    if word in _NEEDS_SIGN:
        trust, loose = loose, Certainty.LOOSEST
    for link in _P.link.finditer(lower, after, after + MAX_CHARS_BETWEEN):
        # In "passwords with argon2id m=65536" the sign belongs to another word.
        is_of_other = link["link"] and link["link"][0] == "=" and " " in lower[after : link.start()]
        if not link["link"] or is_of_other or lower.count(" ", after, link.start()) > MAX_WORDS_BETWEEN:
            break
        if tail := _P.after_link.match(lower, link.end()):
            yield tail, trust
        if link["link"].strip()[:1] in _SIGNS:
            break
    is_changed = _P.changed.search(lower, max(0, at - 60), at) is not None
    if tail := _P.unsure.match(lower, after):
        is_changed = is_changed or _P.changed_after.match(lower, after, tail.start("value")) is not None
        yield tail, trust if is_changed or _P.changed_after.match(lower, tail.end()) else loose
    if tail := _P.changed_to.match(lower, after):
        yield tail, trust
    if trust is Certainty.PASSWORD and (tail := _P.still.match(lower, after)) and _is_shaped_end(lower, tail):
        yield tail, trust
    if trust is not Certainty.PASSWORD and (tail := _P.for_whom.match(lower, after)):
        yield tail, loose
    if tail := _P.next.match(lower, after):
        yield tail, _certainty_of_next(lower, tail, word, at, trust, loose, is_changed=is_changed)


def _is_shaped_end(lower: str, tail: re.Match[str]) -> bool:
    """Return True if a clause ends with a value of letters and a digit, as in "the password is still blue-kettle-9"."""
    value = tail["value"].rstrip(".,;)!?")
    return (
        len(value) >= MIN_SHAPED_CHARS
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and not is_name(value)
        and lower[tail.end() :].lstrip(" ")[:1] in ("", "\n", "(", ",", ".")
    )


def _certainty_of_next(
    lower: str, tail: re.Match[str], word: str, at: int, trust: Certainty, loose: Certainty, *, is_changed: bool
) -> Certainty:
    """Return the certainty of a value right after the word."""
    value = tail["value"].rstrip(".,;)")
    if trust is Certainty.TOKEN:
        return trust if is_uuid(value) else loose
    is_last = lower[tail.end() :].lstrip(" ")[:1] in ("", "\n", "(", ",", ".") and lower[tail.start()] != ","
    if value.isdigit():
        return trust if 4 <= len(value) <= 20 and is_last and not _P.year.fullmatch(value) else loose
    if not any(c.isdigit() for c in value) and is_changed:
        return loose
    if word in _SHORT and _P.listed.search(lower, max(0, at - 40), at) and value[0].isalnum():
        return Certainty.PASSWORD
    if word in _NEEDS_SIGN and not (is_last and _P.guarded.search(lower, max(0, at - 40), at)):
        return loose
    is_quoted = value[:1] in ("'", '"', "`") and any(c.isdigit() for c in value)
    is_chosen = is_last and len(value) >= MIN_SHAPED_CHARS and not is_name(value)
    is_given = is_quoted or is_chosen or is_changed or _P.given.search(lower, max(0, at - 80), at)
    return trust if is_given or _P.changed_after.match(lower, tail.end()) else loose


def _value_in(tail: re.Match[str], text: str, trust: Certainty) -> tuple[int, int] | None:
    """Return the range of the value in `tail`, whole or in pieces of the same length; None if it is no value."""
    start, end = trim_value(text, *tail.span("value"))
    if is_value(text, start, end, trust, is_many=bool(tail.groupdict().get("many"))):
        return start, end
    if trust in (Certainty.LOOSE, Certainty.LOOSEST):
        return None
    pieces = _PIECES[end - start].match(text, start) if end - start in _PIECES else None
    words = [piece.isalpha() for piece in _P.gap.split(pieces[0])] if pieces else []
    if pieces and 2 * sum(words) < len(words) and not _P.function_words.search(pieces[0].lower()):
        joined = _P.gap.sub("", pieces[0])
        if is_value(joined, 0, len(joined), trust, is_many=True):
            return pieces.span()
    return None


def _find_pins(view: TextView, at: int, word: str) -> Iterator[tuple[str, int, int]]:
    text, after = view.text, at + len(word)
    if word.isascii() and after < len(text) and text[after].isalpha():
        return
    tail = _P.pin_tail.match(text, after) if _P.digits.search(text, after, after + MAX_CHARS_BETWEEN) else None
    if not tail:
        return
    digits = "".join(c for c in tail["value"] if c.isdigit())
    is_announced = bool(tail["link"].strip()) or text[at : at + 3] in ("PIN", "Pin") or word != "pin"
    around = text[max(0, at - 80) : tail.end() + 60]
    if word in _DOOR_WORDS and (
        (not tail["link"].strip() and tail["between"] and not _P.door.search(tail["between"].lower()))
        or not _P.door.search(view.lower, max(0, at - 60), tail.end() + 30)
        or _P.other_code.search(view.lower[max(0, at - 12) : at])
    ):
        return
    is_other = (len(digits) == 6 and _P.postal.search(around)) or (word == "pin" and _P.electric.search(around))
    if is_announced and 3 <= len(digits) <= 8 and not is_other and not _is_year_of(tail, word):
        yield "pin", *tail.span("value")


def _is_year_of(tail: re.Match[str], word: str) -> bool:
    """Return True for a year as in `pin from 2019` or `building code 2021`, where nothing says that it is the code."""
    if tail["link"].strip():
        return False
    if word == "pin" and tail["between"].strip():
        return not _P.card.search(tail["between"].lower())
    return _P.year.fullmatch(tail["value"]) is not None


def _find_logins(view: TextView, keys: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every PIN, and of every password next to the name of its user."""
    for word, at in find_words(view, PIN_WORDS, keys):
        yield from _find_pins(view, at, word)
    for pair in _P.pair.finditer(view.lower) if PAIR_SIGN in keys or " / " in view.text else ():
        start, end = trim_value(view.text, *pair.span(1))
        around = view.lower[max(0, pair.start() - 60) : pair.end() + 60]
        if _P.access.search(around) and is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
            yield "login", start, end
    for word in LOGIN_WORDS.keys() & keys:
        at, hits = view.lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            login = _P.login.match(view.text, at)
            if login:
                start, end = trim_value(view.text, *login.span(2))
                if is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
                    yield "login", start, end
            at = view.lower.find(word, at + len(word))
