"""Records of consolidation: what could be said once instead of many times, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.model.records import Kind, Origin, Owner


class ProposalState(StrEnum):
    """What has become of a proposal."""

    OPEN = "open"
    APPLIED = "applied"
    REJECTED = "rejected"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One memory a proposal takes in, as it was when the proposal was made and as applying left it."""

    id: str
    version: int
    ended_version: int | None = None  # None: not applied
    valid_to: datetime | None = None  # what it had before


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One memory that could stand for several."""

    id: str = ""  # "p-3"; the store gives it
    owner: Owner
    kind: Kind
    text: str
    tags: tuple[str, ...] = ()
    folds: tuple[Fold, ...]
    reason: str
    origin: Origin  # how far the new memory can be trusted
    state: ProposalState = ProposalState.OPEN
    memory_id: str | None = None  # what applying it made, or found there already
    is_new: bool = True  # False: found there already, so undoing leaves it
    created_at: datetime
    decided_at: datetime | None = None
