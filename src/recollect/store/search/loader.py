"""Thread that loads indexes while searches are answered without them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from recollect.errors import RecollectError
from recollect.meter import METER, Meter
from recollect.store.search.index_cache import IndexKey

MAX_WAITING = 16
"""Indexes that wait to be loaded. Owners beyond it are asked again, and wait then."""

log = logging.getLogger("recollect")


class IndexLoader:
    """Loads one index at a time on a thread that exists while there are any to load."""

    def __init__(self, load: Callable[[IndexKey], None]) -> None:
        self._load = load
        self._waiting: deque[IndexKey] = deque()
        self._current: IndexKey | None = None
        self._lock = threading.Lock()  # guards the queue and the existence of the thread
        self._is_running = self._is_closed = False

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
        threading.Thread(target=self._run, args=(meter,), name="recollect-index-loader", daemon=True).start()

    def close(self) -> None:
        """Load no more; a load in progress fails when the store is closed."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()

    def _run(self, meter: Meter) -> None:
        METER.set(meter)
        while True:
            with self._lock:
                self._current = self._waiting.popleft() if self._waiting else None
                if self._current is None:
                    self._is_running = False
                    return
            try:
                self._load(self._current)
            except RecollectError as error:
                # Searches go on without the index, and ask for it again.
                log.info("A search index was not loaded: %s", error)
            except Exception:
                log.exception("A search index was not loaded")
