"""Records of working memory: what a model is shown at one call, and what was done to make it fit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recollect.model.records import Json, Owner


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
