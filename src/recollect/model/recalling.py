"""What recall answers beside its hits: what did not answer, and why something is where it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.model.records import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A source that did not answer a question, or not in time."""

    source: str
    reason: str


class Recalled(list[Hit]):
    """What fits a question best, best first; `unanswered` names the sources that have no say in it, and why; `heading`
    says what the hits are, if they were asked for with a purpose."""

    __slots__ = ("heading", "unanswered")

    def __init__(self, hits: Iterable[Hit] = (), unanswered: Iterable[Unanswered] = (), heading: str = "") -> None:
        super().__init__(hits)
        self.unanswered = tuple(unanswered)
        self.heading = heading


class Outcome(StrEnum):
    """What became of one thing at one question."""

    RECALLED = "recalled"
    OUT_RANKED = "out_ranked"
    MISSING = "missing"  # or somebody else's
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    HELD = "held"
    LATER = "later"  # it was not known yet at the time the question is about
    FILTERED = "filtered"
    DOUBLE = "double"
    NOT_EMBEDDED = "not_embedded"
    NO_MATCH = "no_match"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """What became of one thing in one prompt."""

    call_id: str
    session_id: str
    at: datetime
    block: str
    left_out: str = ""  # why it was not shown: budget, moved, shown in another block; empty: it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why something was recalled, or was not."""

    id: str
    outcome: Outcome
    sentence: str
    rank: int | None = None  # 1 is the first; None: it has none
    hit: Hit | None = None  # with its score, as it was weighed
    words: tuple[str, ...] = ()  # of the question, those it holds
    rival: Hit | None = None  # the last one that was shown instead, or the one it doubles
    unanswered: tuple[Unanswered, ...] = ()
    shown: tuple[Hit, ...] = ()  # all that the question recalls
    prompts: tuple[Appearance, ...] = ()  # of its agent's latest, newest first: those that had it, shown or left out
