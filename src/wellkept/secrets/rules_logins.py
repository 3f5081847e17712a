"""Find PINs, codes of doors, and pairs of a name and a password."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellkept.secrets.rules_text import TextView
from wellkept.secrets.rules_values import Certainty, is_value, trim_value
from wellkept.secrets.rules_words import DOORS, FILLER, IS, LOGINS, MAX_HITS, PINS, find_words, prepare_words

MAX_CHARS_BETWEEN = 90
"""Maximum distance between such a word and its value."""

_PIN_TAIL = re.compile(
    rf"""
    (?P<between>(?:[ \t]?\([^)\n]{{1,30}}\)|(?:[ \t][\w'@&/\#.-]{{1,30}}+){{0,6}}?))
    (?P<link>\s?(?:[:=]|->)\s?|\s?[是は为為]\s?|[ \t](?i:{IS}|e|to)(?:[ \t](?i:{FILLER})){{0,3}}:?[ \t]
        |[ \t](?i:nr\.?|no\.?|number)?[ \t]?)
    ["'`]{{0,2}}(?P<value>[*\#A-Z]?\d(?:[ -]?\d){{3,9}}[\#*]?|\d{{2,4}}[A-F]\d{{0,4}})["'`*]{{0,2}}
    (?![A-Za-z0-9_%€$£°/年月日桁位])(?![.,:]\d|[ ][A-Z]{{2}}\b)
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_POSTAL = re.compile(r"(?i)address|deliver|postal|lookup|zip|city|district|india|ship|courier|covers|locality|area\b")
_ELECTRIC = re.compile(r"(?i)gpio|\bboard|solder|connector|\bheader\b|\bground\b|jumper|socket|arduino|\bLED\b|volt")
_DOOR = re.compile(
    r"door|gate\b|alarm|\bsafe\b|tresor|garage|keypad|\block\b|entr(?:y|ance)|\btur\b|haustur|\btor\b|\bporte\b|portail|digicode"
    r"|\bporta\b|portao|cancello|puerta|porton|deur|kluis|poort|\bdor\b|drzwi|bram[ay]|dver|kapi|phone|kart|card|tarjeta|cart[ae]o?\b"
)
_CARD = re.compile(
    r"^\s(?:of|for|to|on|fur|von|zu[rm]?|de|du|della|del|van|voor)\b.*"
    r"(?:card|karte|carte|carta|tarjeta|phone|handy|bank|safe|locker)$"
)
_OTHER_CODE = re.compile(
    r"(?:zip|post(?:al)?|area|country|error|status|exit|dress|discount|promo|voucher|booking|colou?r|source|qr|bar|http"
    r"|ean|swift|iata|icao|icd|boarding|tax|product|course|class|error)[ -]?$"
)
_PAIR = re.compile(
    r"(?<![\w/.@-])(?:admin|root|administrator|user|deploy|ubuntu|postgres|sa|test|guest|pi)(?::|(?<=min)\s/\s|(?<=root)\s/\s)([^\s:/\"'`]{5,60})(?![:/\w])"
)
_PAIR_SIGN = ":"
_ACCESS = re.compile(r"cred|log ?in|sign ?in|passw|\bpw\b|account|access|zugang|\buse\b|\bauth")
_LOGIN = re.compile(
    r"(?i:credentials?|creds|logins?|log ?in(?:to)?|logged in"
    r"|sign in|signed in|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?"
    r"|zugangsdaten|anmeldedaten|identifiants?|credenciales|credenciais|credenziali|inloggegevens|ssh in|default login)"
    r"(?:[ \t](?!user\b)[\w.'-]{1,24}){0,5}?"
    r"\s?(?:[:=]|[ \t](?i:is|are|with|as|using|mit|avec|con|com|met|sind|sont|son))?\s{1,2}[\"'`(]?"
    r"(?:(?i:user(?:name)?)\s?[:=]?\s?|(?i:my|the|our|his|her|meine?|mon|mi)\s)?([\w.@+-]{2,40})[\"'`]?"
    r"(?:\s?/\s?|:(?!\s)|\s\|\s|[ \t]+(?i:and|with|und|et|y|e)[ \t]+|,[ \t]+)"
    r"(?:(?i:pass(?:word)?|pw)\s?[:=]?\s?)?[\"'`]?((?![\w.+-]{1,64}@[\w-]{1,40}\.\w)[^\s\"'`]{4,100})"
)

_DOOR_WORDS, _PIN_WORDS, _LOGIN_WORDS = prepare_words(DOORS), prepare_words(PINS + DOORS), prepare_words(LOGINS)
LOGIN_WORDS = (*_PIN_WORDS, *_LOGIN_WORDS, _PAIR_SIGN)


def _find_pins(view: TextView, at: int, word: str) -> Iterator[tuple[str, int, int]]:
    text, after = view.text, at + len(word)
    if word.isascii() and after < len(text) and text[after].isalpha():
        return
    tail = _PIN_TAIL.match(text, after) if _DIGITS.search(text, after, after + MAX_CHARS_BETWEEN) else None
    if not tail:
        return
    digits = "".join(c for c in tail["value"] if c.isdigit())
    is_announced = bool(tail["link"].strip()) or text[at : at + 3] in ("PIN", "Pin") or word != "pin"
    around = text[max(0, at - 80) : tail.end() + 60]
    if word in _DOOR_WORDS and (
        (not tail["link"].strip() and tail["between"] and not _DOOR.search(tail["between"].lower()))
        or not _DOOR.search(view.lower, max(0, at - 60), tail.end() + 30)
        or _OTHER_CODE.search(view.lower[max(0, at - 12) : at])
    ):
        return
    is_other = (len(digits) == 6 and _POSTAL.search(around)) or (word == "pin" and _ELECTRIC.search(around))
    if is_announced and 3 <= len(digits) <= 8 and not is_other and not _is_year_of(tail, word):
        yield "pin", *tail.span("value")


def _is_year_of(tail: re.Match[str], word: str) -> bool:
    """Return True for a year as in `pin from 2019` or `building code 2021`, where nothing says that it is the code."""
    if tail["link"].strip():
        return False
    if word == "pin" and tail["between"].strip():
        return not _CARD.search(tail["between"].lower())
    return _YEAR.fullmatch(tail["value"]) is not None


def find_logins(view: TextView, keys: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every PIN, and of every password next to the name of its user."""
    for word, at in find_words(view, _PIN_WORDS, keys):
        yield from _find_pins(view, at, word)
    for pair in _PAIR.finditer(view.lower) if _PAIR_SIGN in keys or " / " in view.text else ():
        start, end = trim_value(view.text, *pair.span(1))
        around = view.lower[max(0, pair.start() - 60) : pair.end() + 60]
        if _ACCESS.search(around) and is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
            yield "login", start, end
    for word in _LOGIN_WORDS.keys() & keys:
        at, hits = view.lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            login = _LOGIN.match(view.text, at)
            if login:
                start, end = trim_value(view.text, *login.span(2))
                if is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
                    yield "login", start, end
            at = view.lower.find(word, at + len(word))
