"""How the answers of several sources become one list.

A source measures its candidates against its own best, so that a good match stands out. To compare them with another
source's, one more number is needed: how well that best one answers the question at all. The strongest source keeps its
similarities, the others' are scaled down to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from recollect.policy.text import terms

LOOKED_AT = 3
"""How many of a source's first candidates are read to tell how strong it is."""

FULL_COSINE = 0.6
"""Texts this close mean the same as far as anybody can tell; the usual embedders seldom put a paraphrase nearer."""


def coverage(question: Collection[str], text: str) -> float:
    """The share of the question's words (as `text.terms` cuts them) that a text holds.

    >>> coverage(["refund", "polici"], "Our refund policies"), coverage(["refund", "polici"], "A refund")
    (1.0, 0.5)
    """
    wanted = set(question)
    return len(wanted.intersection(terms(text))) / len(wanted) if wanted else 0.0


def strength(question: str, best_texts: Iterable[str], cosines: Iterable[float]) -> float:
    """How well the best of a source's candidates answer a question, by words or by meaning, 0 to 1."""
    wanted = terms(question)
    by_words = max((coverage(wanted, text) for text in best_texts), default=0.0)
    by_meaning = max((cosine / FULL_COSINE for cosine in cosines), default=0.0)
    return min(1.0, max(by_words, by_meaning, 0.0))


def scales(strengths: Mapping[str, float]) -> dict[str, float]:
    """What each source's similarities are multiplied with.

    >>> scales({"memory": 0.8, "audit": 0.2})
    {'memory': 1.0, 'audit': 0.25}
    >>> scales({"memory": 0.0})
    {'memory': 1.0}
    """
    strongest = max(strengths.values(), default=0.0)
    return {name: each / strongest if strongest > 0 else 1.0 for name, each in strengths.items()}


def without_doubles(hashes: Iterable[str], *, most: int | None = None) -> tuple[list[int], dict[int, int]]:
    """The positions of what is said first, and for the position of each double that of what it doubles.

    `hashes` are in order, the best first; once `most` are found, the rest is not looked at.

    >>> without_doubles(["a", "b", "a", "a", "c"])
    ([0, 1, 4], {2: 0, 3: 0})
    >>> without_doubles(["a", "a", "b", "c"], most=2)
    ([0, 2], {1: 0})
    """
    first: dict[str, int] = {}
    doubles = {}
    for position, each in enumerate(hashes):
        if first.setdefault(each, position) != position:
            doubles[position] = first[each]
        elif len(first) == most:
            break
    return list(first.values()), doubles
