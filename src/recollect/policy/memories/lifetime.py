"""How long memories live and how they fade."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

JOURNAL_WINDOW = timedelta(days=7)
"""A journal entry leaves the prompt after this; its row stays and shows as expired."""

DECAY_PER_WEEK = 0.95
"""What is left of an importance after one week without being retrieved."""

ARCHIVE_BELOW = 0.1
"""An episode whose importance has decayed below this is archived."""

EARLY_BELOW = 0.2
"""Episodes that never mattered more than this make room before any other."""

EPISODE_QUOTA = 10_000
"""Live episodes an agent may have."""


class Fate(StrEnum):
    """What maintenance does with an episode."""

    KEPT = "kept"
    EXPIRED = "expired"
    FADED = "faded"


def decayed_importance(importance: float, *, retrieved_at: datetime, now: datetime) -> float:
    """What is left of an importance after going unretrieved since `retrieved_at`.

    >>> round(decayed_importance(0.8, retrieved_at=datetime(2026, 1, 1), now=datetime(2026, 1, 15)), 3)
    0.722
    """
    weeks = max(now - retrieved_at, timedelta()) / timedelta(weeks=1)
    return importance * float(DECAY_PER_WEEK**weeks)


def fate(
    importance: float,
    created_at: datetime,
    last_retrieved_at: datetime | None,
    expires_at: datetime | None,
    *,
    now: datetime,
) -> Fate:
    """What becomes of an episode at `now`.

    >>> fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2025, 2, 1))
    <Fate.KEPT: 'kept'>
    >>> fate(0.5, datetime(2025, 1, 1), None, None, now=datetime(2026, 1, 1))
    <Fate.FADED: 'faded'>
    """
    if expires_at is not None and expires_at <= now:
        return Fate.EXPIRED
    left = decayed_importance(importance, retrieved_at=last_retrieved_at or created_at, now=now)
    return Fate.FADED if left < ARCHIVE_BELOW else Fate.KEPT


def quota_rank(
    importance: float, created_at: datetime, last_retrieved_at: datetime | None, *, now: datetime
) -> tuple[bool, float]:
    """Sorts episodes by who goes first when there are too many: the unimportant, then the most faded."""
    left = decayed_importance(importance, retrieved_at=last_retrieved_at or created_at, now=now)
    return (importance >= EARLY_BELOW, left)
