"""Whether a store is in order: what was looked at, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Check", "IndexGaps", "StoreState", "WrongWords"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    is_ok: bool
    says: str
    advice: str = ""  # what to do about it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """What a database says about itself."""

    schema: int  # the number of its newest step
    durability: str  # by what an answered write survives a power cut
    is_durable: bool
    lost: Sequence[str] = ()  # tables and columns it should have
    unmade: Mapping[str, str] = field(default_factory=dict)  # indexes and views it should have: what makes each


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGaps:
    """Where a tenant's search index and what it is an index of disagree."""

    missing: int  # texts that should be found and are not in it
    surplus: int  # entries of texts that should not be found, or that say something else by now


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongWords:
    """An entry of the search index that holds other words than its text."""

    shelf: str  # memory, knowledge or workflow
    agent: str  # whose memory it is; empty on the shelves of a tenant
    seq: int
    name: str  # as a finding names it: atlas/m-7, d-0f34/2, refund-run/3
