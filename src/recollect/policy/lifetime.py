"""How long memories live and how they fade."""

from __future__ import annotations

from datetime import datetime, timedelta

JOURNAL_WINDOW = timedelta(days=7)
"""A journal entry leaves the prompt after this; its row stays and shows as expired."""

DECAY_PER_WEEK = 0.95
"""What is left of an importance after one week without being retrieved."""


def decayed_importance(importance: float, *, retrieved_at: datetime, now: datetime) -> float:
    """What is left of an importance after going unretrieved since `retrieved_at`.

    >>> round(decayed_importance(0.8, retrieved_at=datetime(2026, 1, 1), now=datetime(2026, 1, 15)), 3)
    0.722
    """
    weeks = max(now - retrieved_at, timedelta()) / timedelta(weeks=1)
    return importance * float(DECAY_PER_WEEK**weeks)
