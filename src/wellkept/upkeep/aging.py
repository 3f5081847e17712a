"""Decisions of maintenance about episodes: which expire, fade or exceed the quota, and when they will."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from wellkept.memory.rules_lifetime import Fate, decide_fate, find_fading, quota_rank
from wellkept.model.stored import Aging


class EpisodeQuota:
    """Live episodes of an agent by user, to find those beyond the quota.

    Each user has a quota of its own, and so have the episodes of no user.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._evictable: dict[str, list[tuple[tuple[int, float], int]]] = {}
        self.live = Counter[str]()

    def add(self, kept: Iterable[Aging]) -> None:
        # Corrected episodes are no longer live and do not count towards the quota.
        for episode in (each for each in kept if not _is_corrected(each, self._now)):
            self.live[episode.user] += 1
            if (rank := _rank(episode, self._now)) is not None:
                self._evictable.setdefault(episode.user, []).append((rank, episode.seq))

    def find_excess(self, quota_of: Callable[[str], int]) -> list[int]:
        """Return the numbers of the episodes that are archived first, as many as there are too many."""
        return [
            seq
            for user, ranked in self._evictable.items()
            for _, seq in heapq.nsmallest(max(0, self.live[user] - quota_of(user)), ranked)
        ]


def decide_episode(episode: Aging, now: datetime) -> Fate:
    """Decide what maintenance does with an episode."""
    # A corrected episode decays like any other, also if it was a fact.
    category = None if _is_corrected(episode, now) else episode.category
    return decide_fate(
        episode.importance,
        episode.created_at,
        episode.last_retrieved_at,
        episode.expires_at,
        now=now,
        category=category,
    )


def find_end(episode: Aging, now: datetime) -> datetime | None:
    """Return when the fate of an episode that is kept will have to be decided again."""
    is_corrected = _is_corrected(episode, now)
    used_at, category = episode.last_retrieved_at or episode.created_at, None if is_corrected else episode.category
    fades_at = find_fading(episode.importance, used_at, category=category)
    ends = (episode.expires_at, fades_at, None if is_corrected else episode.valid_to)
    return min((end for end in ends if end is not None), default=None)


def _rank(episode: Aging, now: datetime) -> tuple[int, float] | None:
    return quota_rank(
        episode.importance, episode.created_at, episode.last_retrieved_at, now=now, category=episode.category
    )


def _is_corrected(episode: Aging, now: datetime) -> bool:
    return episode.has_ended or (episode.valid_to is not None and episode.valid_to <= now)
