"""Lifetime and decay of memories."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

JOURNAL_WINDOW = timedelta(days=7)
"""Time after which a journal entry leaves the prompt; its row stays and is shown as expired."""

DECAY_PER_WEEK = 0.95
"""Share of its importance that a memory keeps per week without retrieval."""

ARCHIVE_BELOW = 0.1
"""Decayed importance below which an episode is archived."""

EARLY_BELOW = 0.2
"""Initial importance below which episodes are evicted first."""

EPISODE_QUOTA = 10_000
"""Maximum number of live episodes per agent."""


class Fate(StrEnum):
    """Result of maintenance for an episode."""

    KEPT = "kept"
    EXPIRED = "expired"
    FADED = "faded"


def decay_importance(importance: float, *, retrieved_at: datetime, now: datetime) -> float:
    """Compute the importance left without retrieval since `retrieved_at` (exponential decay).

    >>> round(decay_importance(0.8, retrieved_at=datetime(2026, 1, 1), now=datetime(2026, 1, 15)), 3)
    0.722
    """
    weeks = max(now - retrieved_at, timedelta()) / timedelta(weeks=1)
    return importance * float(DECAY_PER_WEEK**weeks)


def decide_fate(
    importance: float,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    expires_at: datetime | None,
    *,
    now: datetime,
) -> Fate:
    """Decide what maintenance does with an episode at `now`.

    >>> decide_fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2025, 2, 1))
    <Fate.KEPT: 'kept'>
    >>> decide_fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2026, 1, 1))
    <Fate.FADED: 'faded'>
    """
    if expires_at is not None and expires_at <= now:
        return Fate.EXPIRED
    left = decay_importance(importance, retrieved_at=last_retrieved_at or created_at, now=now)
    return Fate.FADED if left < ARCHIVE_BELOW else Fate.KEPT


def quota_rank(
    importance: float, created_at: datetime, last_retrieved_at: datetime | None, *, now: datetime
) -> tuple[bool, float]:
    """Return a sort key for eviction: unimportant episodes first, then the most decayed."""
    left = decay_importance(importance, retrieved_at=last_retrieved_at or created_at, now=now)
    return (importance >= EARLY_BELOW, left)
