"""Answers of recall and context."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from wellkept.model.hits import Hit
from wellkept.model.records import INSIDE, Json, Owner, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A source that failed or exceeded the deadline."""

    source: str = field(metadata={"description": f"{', '.join(Source)}, or the embedder"})
    reason: str


class Recalled(list[Hit]):
    """Hits of a recall, best first.

    `unanswered` lists the sources that failed or timed out. `heading` describes the hits when a purpose was given.
    """

    __slots__ = ("heading", "unanswered")

    def __init__(self, hits: Iterable[Hit] = (), unanswered: Iterable[Unanswered] = (), heading: str = "") -> None:
        super().__init__(hits)
        self.unanswered = tuple(unanswered)
        self.heading = heading


class Outcome(StrEnum):
    """Result of one item in one recall."""

    RECALLED = "recalled"
    OUT_RANKED = "out_ranked"
    BELOW_THRESHOLD = "below_threshold"  # `min_relevance`
    MISSING = "missing"  # or owned by another agent
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    HELD = "held"
    LATER = "later"  # stored after the time given by `as_of`
    FILTERED = "filtered"
    DOUBLE = "double"
    NOT_EMBEDDED = "not_embedded"
    NO_MATCH = "no_match"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """Result of one item in one prompt."""

    call_id: str
    session_id: str
    at: datetime
    block: str
    left_out: str = field(
        default="",
        metadata={
            "description": "Reason it was not shown: budget, moved, below_threshold, or its other place; empty: it was."
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Reason an item was or was not recalled; with an empty id, the same for a whole answer."""

    id: str
    outcome: Outcome
    sentence: str
    rank: int | None = field(default=None, metadata={"description": "1 is the first; null: none."})
    hit: Hit | None = None  # with its score
    words: tuple[str, ...] = field(default=(), metadata={"description": "Words of the question that it contains."})
    rival: Hit | None = None  # the lowest hit that was returned, or the hit it duplicates
    unanswered: tuple[Unanswered, ...] = field(default=(), metadata={"alias": "missing"})
    hits: tuple[Hit, ...] = ()  # every hit the question recalls
    prompts: tuple[Appearance, ...] = field(
        default=(), metadata={"description": "Those of the agent's latest 20 prompts that had it."}
    )
    text: str = field(default="", metadata={"description": "Its text, if it is at hand."})
    items: tuple[Explanation, ...] = ()  # of a whole answer: each hit, then the best of what was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockItem:
    """One item of a prompt block, shown or left out. Its text is not stored, so that it can be erased."""

    id: str  # unique in its block: "m-7", "turn 3", "tool 1"
    source: str = ""  # memory, audit, workflow, knowledge, turn, skill …
    score: float | None = None
    digest: str = field(default="", metadata={"description": "Digest of the text."})
    left_out: str = field(
        default="",
        metadata={"description": "Reason it is not shown: budget, folded, moved, below_threshold, or its place."},
    )
    text: str | None = field(
        default=None, metadata={"description": "The current text; null: it is deleted, or was never stored."}
    )
    since: str = field(default="", metadata={"description": "Change since that call: changed, gone, or empty."})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a prompt: its tokens and items."""

    name: str
    tokens: int
    items: tuple[BlockItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """One step taken to fit a prompt into its budget."""

    step: str = field(metadata={"examples": ["fold", "drop", "reference"]})  # fold, drop or reference
    block: str
    tokens_removed: int
    sources: tuple[str, ...] = field(metadata={"description": "Items it affected."})
    message: str
    references: tuple[str, ...] = field(default=(), metadata={"description": "Keys of the texts that were moved."})
    dropped_references: tuple[str, ...] = field(
        default=(), metadata={"description": "Keys the prompt no longer mentions."}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """A prompt for one model call."""

    id: str  # "c-…"; look it up with `context_call`
    messages: tuple[Json, ...]
    tokens: int
    budget: int
    layout: str
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
    stable_messages: int = field(
        default=0, metadata={"description": "Number of first messages that the next prompt shares."}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """Record of one prompt, by ids and digests."""

    id: str
    owner: Owner = field(metadata=INSIDE)
    session_id: str = field(metadata={"description": "The conversation that it continued; empty: none."})
    at: datetime
    layout: str
    budget: int
    tokens: int
    blocks: tuple[Block, ...]
    truncations: tuple[Truncation, ...]
    user: str | None = field(default=None, metadata={"description": "The end user it was for; null: none."})
