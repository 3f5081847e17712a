"""Noting that memories were recalled, without making the recall wait.

What was recalled gathers here and a thread writes it down in batches. Nothing is lost on an orderly close; after a
crash the last second's marks are missing, which only lets those memories fade a little sooner.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from recollect.errors import RecollectError
from recollect.model import Owner
from recollect.ports import MaintenanceStore

PAUSE = 1.0
"""Seconds between batches: many recalls of the same memories become one write."""

log = logging.getLogger("recollect")


class Retrieved:
    """The marks that wait to be written."""

    def __init__(self, store: MaintenanceStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._marks: dict[Owner, dict[int, datetime]] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime) -> None:
        """Say that these were recalled; returns at once."""
        if not seqs:
            return
        with self._lock:
            self._marks.setdefault(owner, {}).update(dict.fromkeys(seqs, at))
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._serve, name="recollect-retrieved", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Write down what has gathered.

        Raises: StoreError.
        """
        with self._lock:
            marks, self._marks = self._marks, {}
        try:
            while marks:
                owner, times = next(iter(marks.items()))
                for at, seqs in _by_second(times):
                    self._store.mark_retrieved(owner, seqs, at=at)
                del marks[owner]
        finally:  # what could not be written waits for the next time, unless it was recalled again meanwhile
            with self._lock:
                for owner, times in marks.items():
                    self._marks[owner] = {**times, **self._marks.get(owner, {})}

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _serve(self) -> None:
        while not self._closed.wait(PAUSE):
            try:
                self.flush()
            except RecollectError as error:
                log.warning("Recalled memories could not be marked as such: %s", error)


def _by_second(times: Mapping[int, datetime]) -> Iterator[tuple[datetime, Sequence[int]]]:
    """What was recalled within the same second is written at once, with the latest of its times: a hundred recalls in
    a second would otherwise be a hundred transactions."""
    seconds: dict[int, list[int]] = {}
    for seq, at in times.items():
        seconds.setdefault(int(at.timestamp()), []).append(seq)
    for seqs in seconds.values():
        yield max(times[seq] for seq in seqs), seqs
