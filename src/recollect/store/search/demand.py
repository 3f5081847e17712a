"""Demand for indexes: the owners that are asked often enough for an index in memory.

Loading an index costs as much as answering some dozen questions from the database, so an owner gets one only if it was
asked repeatedly within minutes. If the cache is full, it must also have been asked clearly more often than the owners
whose indexes have to make room: otherwise many owners asked in turn would only displace each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable

MIN_ASKED = 4
"""Questions within `HALF_LIFE` after which an owner gets an index."""

ADVANTAGE = 2
"""Factor by which it must be asked more often than an owner whose index is dropped for it, besides `MIN_ASKED`."""

HALF_LIFE = 600.0
"""Seconds after which all counts are halved."""

MAX_OWNERS = 20_000
"""Owners counted. If there are more, counts are halved early, which forgets those asked once."""


class Demand:
    """Numbers of recent questions. Owners are counted by their hashes, so no name outlives its owner."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        self._halved_at = time.monotonic()
        self._lock = threading.Lock()

    def count(self, owner: Hashable) -> None:
        """Count a question to an owner."""
        key = hash(owner)
        with self._lock:
            if len(self._asked) >= MAX_OWNERS or time.monotonic() - self._halved_at > HALF_LIFE:
                self._asked = {key: count // 2 for key, count in self._asked.items() if count > 1}
                self._halved_at = time.monotonic()
            self._asked[key] = self._asked.get(key, 0) + 1

    def is_high(self, owner: Hashable) -> bool:
        """Return True if an owner is asked often enough for an index."""
        return self._asked.get(hash(owner), 0) >= MIN_ASKED

    def is_ahead(self, owner: Hashable, other: Hashable) -> bool:
        """Return True if one owner is asked so much more often that the index of the other should make room."""
        own, others = (self._asked.get(hash(each), 0) for each in (owner, other))
        return own >= ADVANTAGE * others + MIN_ASKED
