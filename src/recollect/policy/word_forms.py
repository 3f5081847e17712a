"""Words whose forms share no stem: what "bought" says "buy" asks for, and the "children" are each a "child".

A stemmer cuts endings and so knows regular forms only. These are looked for when a question is asked, not when a memory
is stored: the index stays what it is. Left out is what is as often another word ("rose", "led", "leaves").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from recollect.policy.text import terms

IRREGULAR = """
    become became, begin began begun, bite bitten, blow blew blown, break broke broken, bring brought, build built,
    buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew drawn, drink drank drunk,
    drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, fly flew flown,
    forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given,
    go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, know knew known,
    leave left, lend lent, lose lost, make made, mean meant, meet met, pay paid, prove proven, ride rode ridden,
    ring rang rung, run ran, say said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shook shaken,
    shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept,
    slide slid, speak spoke spoken, spend spent, spin spun, stand stood, steal stole stolen, stick stuck, strike struck,
    swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear tore torn,
    tell told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn,
    win won, withdraw withdrew withdrawn, write wrote written,
    man men, woman women, child children, person people, foot feet, tooth teeth, mouse mice, goose geese, wife wives,
    knife knives, shelf shelves, half halves, wolf wolves, thief thieves, loaf loaves"""


def other_forms(term: str) -> Sequence[str]:
    """The terms that the other forms of the same word are indexed as; mostly there are none.

    >>> other_forms("bought"), other_forms("go"), other_forms("tree")
    (('buy',), ('went', 'gone'), ())
    """
    return _families().get(term, ())


@cache  # stemming them all takes a few milliseconds, which an import should not
def _families() -> Mapping[str, Sequence[str]]:
    families = [tuple(dict.fromkeys(terms(family))) for family in IRREGULAR.split(",")]
    return {form: tuple(other for other in family if other != form) for family in families for form in family}
