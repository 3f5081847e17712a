"""Indexes that are loaded in the background for owners that are asked often, while searches are answered without them.

Loading an index costs as much as answering some dozen questions from the database, so an owner gets one only if it was
asked repeatedly within minutes. If the cache is full, it must also have been asked clearly more often than the owners
whose indexes have to make room: otherwise many owners asked in turn would only displace each other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

from wellkept.errors import WellkeptError
from wellkept.meter import METER, Meter
from wellkept.store.search.index_cache import IndexKey

MAX_WAITING = 16
"""Indexes that wait to be loaded. Owners beyond it are asked again, and wait then."""

MIN_ASKED = 4
"""Questions within `HALF_LIFE` after which an owner gets an index."""

ADVANTAGE = 2
"""Factor by which it must be asked more often than an owner whose index is dropped for it, besides `MIN_ASKED`."""

HALF_LIFE = 600.0
"""Seconds after which all counts are halved."""

MAX_OWNERS = 20_000
"""Owners counted. If there are more, counts are halved early, which forgets those asked once."""

log = logging.getLogger("wellkept")


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


class IndexLoader:
    """Loads one index at a time on a thread that exists while there are any to load."""

    def __init__(self, load: Callable[[IndexKey], None]) -> None:
        self._load = load
        self._waiting: deque[IndexKey] = deque()
        self._current: IndexKey | None = None
        self._lock = threading.Lock()  # guards the queue and the existence of the thread
        self._is_running = self._is_closed = False
        self._thread: threading.Thread | None = None

    def request(self, key: IndexKey) -> None:
        """Have an index loaded soon, unless it is waiting already."""
        with self._lock:
            if self._is_closed or key in self._waiting or key == self._current or len(self._waiting) >= MAX_WAITING:
                return
            self._waiting.append(key)
            if self._is_running:
                return
            self._is_running = True
        # The meter of the request counts the load, but its deadline does not end it.
        meter = METER.get()
        self._thread = threading.Thread(target=self._run, args=(meter,), name="wellkept-index-loader", daemon=True)
        self._thread.start()

    def close(self, *, wait: float = 0.0) -> None:
        """Load no more, after waiting so many seconds for what is left; a load in progress fails with the store."""
        if wait and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait)
        with self._lock:
            self._is_closed = True
            self._waiting.clear()

    def _run(self, meter: Meter) -> None:
        METER.set(meter)
        key = None
        try:
            while (key := self._take_next()) is not None:
                self._try_to_load(key)
        finally:
            # After an error that nobody expected, the next request starts another thread.
            if key is not None:
                with self._lock:
                    self._is_running, self._current = False, None

    def _take_next(self) -> IndexKey | None:
        """Return the next index to load. If there is none, the thread ends, and a later request starts another."""
        with self._lock:
            self._current = self._waiting.popleft() if self._waiting else None
            self._is_running = self._current is not None
            return self._current

    def _try_to_load(self, key: IndexKey) -> None:
        try:
            self._load(key)
        except WellkeptError as error:
            # Searches go on without the index, and ask for it again.
            log.info("A search index was not loaded: %s", error)
