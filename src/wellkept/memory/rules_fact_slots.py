"""Tell which older statement a new one of the same person replaces, without a model.

Only where it is sure: an own number, address or name has one value; a home, a date or somebody's role is replaced by a
statement that says it changed ("I live in Oslo now", "we moved the deadline to Friday", "my new boss is Tom"). "I live
in Oslo" alone may make "I live in Norway" only more precise. A value has to look like one: "my boss is great" names no
boss, "I moved to Oslo in 2010" tells of the past.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from wellkept.language import cues
from wellkept.language.languages import LEXICONS
from wellkept.memory import rules_fact_signs as signs
from wellkept.recall.rules_date_words import DAYS, MONTHS

MIN_DIGITS = 3
"""Digits of a telephone number, at least."""
MAX_VALUE_WORDS = 6
"""Words of a value; a longer one says more than the value."""

_NEW = re.compile(r"\b(?:new|neue[rn]?|nouve(?:au|l|lle)|nuev[oa]|nov[oa]|nuov[oa]|changed to)\b")
_SPARE = re.compile(rf"(?:{_NEW.pattern}|\b(?:current|the|den|der|die|das)\b) ?")
_SEVERAL = re.compile(r"\b(?:and|or|und|oder|et|ou|y|o|e|also|auch|aussi|también|também|anche)\b")
_RECENTLY = re.compile(
    r",? \b(?:(?:last|this) (?:week(?:end)?|month|year)|yesterday|letzte[ns]? (?:woche|monat|jahr)"
    r"|l[ae] (?:semaine|mois) derni(?:er|ère)|(?:la semana|el mes) pasad[oa]|(?:la settimana|il mese) scors[oa]"
    r"|(?:na semana|no mês) passad[oa])$"
)
_PARTICLES = frozenset("de des du da do dos das di del della la le les los el am an der im sur of upon von zu".split())
# What people also move to.
_NO_PLACE = re.compile(
    r"\b(?:linux|windows|mac(?:os)?|ubuntu|debian|android|ios|python|rust|java(?:script)?|typescript|postgres\w*|mysql"
    r"|git(?:hub|lab)|aws|azure|vim|emacs|vs ?code|slack|teams?|zoom|marketing|sales|engineering|finance|management|hr"
    r"|it|support|product|legal|operations)\b"
)
_MAIL = re.compile(r"\S+@\S+\.\w+")
_MONTH = "|".join(MONTHS)
_CALENDAR_DAY = re.compile(
    r"\b\d{4}-\d\d?-\d\d?\b|\b\d\d?[./]\d\d?(?:[./]|\b)|\b\d\d?(?:st|nd|rd|th)\b"
    rf"|\b\d\d?(?:\.|er|º|°)? (?:of |de |di )?(?:{_MONTH})\b|\b(?:{_MONTH})\.? \d\d?\b"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Subject of which only one statement can be true, with the value it is given."""

    key: str
    value: str
    is_change: bool  # it says that the value was another one before


def find_slot(text: str) -> Slot | None:
    """Return what a statement gives its only value to; None if it may have several.

    >>> find_slot("I live in Oslo now")
    Slot(key='home', value='oslo', is_change=True)
    >>> find_slot("I live in a small flat"), find_slot("My brother lives in Rome"), find_slot("My boss is great")
    (None, None, None)
    """
    bare = signs.OPENING.sub("", text).rstrip(" .!").replace("’", "'")
    lowered = bare.lower()
    for language in LEXICONS:
        patterns = cues.FACTS[language.code].patterns
        if (found := patterns["slot"].match(lowered)) is None:
            continue
        groups = {name: part for name, part in found.groupdict().items() if part}
        name = next(iter(groups))
        value = _RECENTLY.sub("", " ".join(patterns["change"].sub("", lowered[found.end() :]).strip(" ,").split()))
        words = signs.WORD.findall(value)
        is_mail = _MAIL.fullmatch(value) is not None
        if not words or len(words) > MAX_VALUE_WORDS:
            return None
        if not is_mail and (_SEVERAL.search(value) or language.negations & set(words)):
            return None
        key = name if name == "home" else _SPARE.sub("", groups[name]).strip()
        has_form, is_single = _find_form(key, name)
        if not has_form(value, bare[found.end() :]):
            return None
        says_so = patterns["change"].search(lowered) is not None or _NEW.search(found[0]) is not None
        return Slot(key, value, name == "thing" or is_single or says_so)
    return None


def is_replaced(old: str, new: str) -> bool:
    """Return True if a new statement of somebody gives another value to what an old one of theirs is about.

    >>> is_replaced("My phone number is 555 1234", "My new phone number is 555 9876")
    True
    >>> is_replaced("I live in Norway", "I live in Oslo"), is_replaced("I live in Rome", "I live in Oslo now")
    (False, True)
    """
    one, other = find_slot(old), find_slot(new)
    return (
        one is not None
        and other is not None
        and other.is_change
        and one.key == other.key
        and not _is_within(other.value, one.value)
    )


def _is_within(value: str, known: str) -> bool:
    """Return True if a value tells nothing that is not known: "Ann" of "Ann Berg", a number with other spaces."""
    digits, others = (re.sub(r"\D", "", each) for each in (value, known))
    is_number = len(digits) >= MIN_DIGITS and not re.search(r"[^\W\d_]", value)
    return set(signs.WORD.findall(value)) <= set(signs.WORD.findall(known)) or (is_number and others.endswith(digits))


def _is_number(value: str, said: str) -> bool:
    return len(re.findall(r"\d", value)) >= MIN_DIGITS and not re.search(r"[^\W\d_]{3}", value)


def _is_mail(value: str, said: str) -> bool:
    return _MAIL.fullmatch(value) is not None


def _is_address(value: str, said: str) -> bool:
    return bool(signs.NUMBER.search(value)) or _is_name(value, said)


def _is_day(value: str, said: str) -> bool:
    words = set(signs.WORD.findall(value))
    return not DAYS.keys().isdisjoint(words) or _is_date(value, said)


def _is_date(value: str, said: str) -> bool:
    return has_date(value)


def has_date(text: str) -> bool:
    """Return True if a text in lower case names a day of the calendar.

    >>> has_date("on 12 may"), has_date("el 3 de mayo"), has_date("it may take 3 weeks")
    (True, True, False)
    """
    return _CALENDAR_DAY.search(text) is not None


def _is_name(value: str, said: str) -> bool:
    """Return True if all words of the value are written like those of a name."""
    words = signs.WORD.findall(value)
    spelled = [each for each in signs.WORD.findall(said) if each.lower() in words]
    is_capital = all(each[0].isupper() or each in _PARTICLES for each in spelled)
    return is_capital and said[:1].isupper()


def _is_place(value: str, said: str) -> bool:
    return _is_name(value, said) and not _NO_PLACE.search(value)


Form = Callable[[str, str], bool]

# The form of a value, by a part of the subject's name in any language; True: a second statement is a correction.
_FORMS: tuple[tuple[re.Pattern[str], Form, bool], ...] = (
    (re.compile(r"mail|correo"), _is_mail, True),
    (re.compile(r"num|núm|tel[eé]"), _is_number, True),
    (re.compile(r"ad+ress|direc|indiri|endere|morada"), _is_address, True),
    (re.compile(r"birth|geburt|cumple|an+iv|comple"), _is_date, True),
    (re.compile(r"\bn(?:am|om)|prénom"), _is_name, True),
    # A second boss is a new one only if the statement says so.
    (re.compile(r""), _is_name, False),
)


def _find_form(key: str, name: str) -> tuple[Form, bool]:
    """Return the test of a value of this slot, and whether there is only ever one value."""
    if name != "own":
        return (_is_place if name == "home" else _is_day), False
    return next((form, is_single) for pattern, form, is_single in _FORMS if pattern.search(key))
