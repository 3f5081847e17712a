"""Tell which older statement a new one of the same person replaces, without a model.

Only where it is sure: an own number, address or name has one value; a home or a date is replaced by a statement that
says it changed ("I live in Oslo now", "we moved the deadline to Friday"). "I live in Oslo" alone may make "I live in
Norway" only more precise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from recollect.policy.lexicon import cues
from recollect.policy.lexicon.languages import LEXICONS
from recollect.policy.memories import fact_signs as signs

MAX_VALUE_WORDS = 6
"""Words of a value; a longer one says more than the value."""

_SPARE = re.compile(r"\b(?:new|current|neue|nouve(?:au|lle)|nuev[oa]|nov[oa]|nuov[oa]|the|den|der|die|das)\b ?")
_SEVERAL = re.compile(r"\b(?:and|or|und|oder|et|ou|y|o|e|also|auch|aussi|también|também|anche)\b")


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
    >>> find_slot("I live in a small flat"), find_slot("My brother lives in Rome")
    (None, None)
    """
    bare = signs.OPENING.sub("", text).rstrip(" .!").replace("’", "'")
    lowered = bare.lower()
    for language in LEXICONS:
        patterns = cues.FACTS[language.code].patterns
        if (found := patterns["slot"].match(lowered)) is None:
            continue
        groups = {name: part for name, part in found.groupdict().items() if part}
        name = next(iter(groups))
        value = " ".join(patterns["change"].sub("", lowered[found.end() :]).strip(" ,").split())
        words = signs.WORD.findall(value)
        if not words or len(words) > MAX_VALUE_WORDS or _SEVERAL.search(value) or language.negations & set(words):
            return None
        # A home is a name: "Oslo", not "a flat".
        if name == "home" and not bare[found.end() :][:1].isupper():
            return None
        key = name if name == "home" else _SPARE.sub("", groups[name]).strip()
        return Slot(key, value, name in ("own", "thing") or patterns["change"].search(lowered) is not None)
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
        one is not None and other is not None and other.is_change and one.key == other.key and one.value != other.value
    )
