"""Answers of recall and context."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.model.records import Hit, Json, Owner


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockItem:
    """One thing a block of a prompt shows, or would have shown. Never its text, which may have to be erased."""

    id: str  # "m-7", "turn 3", "tool 1": of its block
    source: str = ""  # memory, audit, workflow, knowledge, turn, skill …
    score: float | None = None
    digest: str = ""  # of its text: tells later whether it still says the same
    left_out: str = ""  # why it is not shown: budget, folded, moved, shown in another block; empty: it is
    text: str | None = None  # as it reads now; only where one call is looked at, and never stored
    since: str = ""  # what happened to it since that call: changed, gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One part of a prompt: what it costs and what is in it."""

    name: str
    tokens: int
    items: tuple[BlockItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """One step that was taken to make a prompt fit."""

    step: str  # fold, drop or reference
    block: str
    tokens_removed: int
    sources: tuple[str, ...]  # the ids it touched
    message: str
    references: tuple[str, ...] = ()  # keys under which to read what was moved
    dropped_references: tuple[str, ...] = ()  # keys the prompt mentioned before and no longer does


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """What a model is to be shown at one call."""

    id: str  # "c-…": asks later what was shown
    messages: tuple[Json, ...]
    tokens: int
    budget: int
    layout: str
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
    stable_messages: int = 0  # how many of the first are the same at the next call; 0 in the standard layout


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """What an agent was shown at one call, by ids and digests."""

    id: str
    owner: Owner
    session_id: str
    at: datetime
    layout: str
    budget: int
    tokens: int
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
