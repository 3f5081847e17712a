"""No answer of a tool is longer than a prompt can bear, however much was found."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Json, Memory
from recollect.policy.details.references import safe_cut
from recollect.policy.memories.trust import is_low, is_suspicious
from recollect.policy.prompt.escaping import as_data

MAX_CHARS = 20_000
"""Of the texts of one answer: about five thousand tokens."""

CUT = "…"


def shortened(text: str, most: int = MAX_CHARS) -> str:
    """`text`, or as much of its beginning as `most` characters hold; no reference is halved.

    >>> shortened("a long story", 7)
    'a long…'
    """
    return text if len(text) <= most else text[: safe_cut(text, most - len(CUT))].rstrip() + CUT


def shown_text(text: str, memory: Memory | None = None) -> Json:
    """Return the text of a result for a model; beside it the origin of a memory that is little trusted."""
    shown: Json = {"text": as_data(text)}
    if memory is not None and is_low(memory.origin):
        shown["origin"] = memory.origin.value
        if is_suspicious(memory):
            shown["unverified"] = True
    return shown


def bounded(shown: Sequence[Json]) -> list[Json]:
    """The results of a search; if their texts are too long together, each that has more than its share is cut, and
    says so by `total`, the characters it has."""
    if sum(len(each["text"]) for each in shown) <= MAX_CHARS:
        return list(shown)
    share = MAX_CHARS // len(shown)
    return [
        {**each, "text": shortened(each["text"], share), "total": len(each["text"])}
        if len(each["text"]) > share
        else each
        for each in shown
    ]
