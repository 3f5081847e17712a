"""Noting that memories were recalled, without making the recall wait.

What was recalled gathers here and a thread writes it down in batches; who reads a memory meanwhile is told of its mark
all the same. After a crash the last second's marks are missing, which only lets those memories fade a little sooner.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.ports import MaintenanceStore
from recollect.services.later import Later


class Retrieved:
    """The marks that wait to be written."""

    def __init__(self, store: MaintenanceStore, *, unmarked: Collection[Kind] = ()) -> None:
        """`unmarked` are kinds that are kept where there is no place for a mark."""
        self._store = store
        self._unmarked = frozenset(unmarked)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._marks: dict[Owner, dict[int, datetime]] = {}
        self._in_hand: dict[Owner, dict[int, datetime]] = {}  # what is being written
        failed = "Recalled memories could not be marked as such"
        self._later = Later(self.flush, name="recollect-retrieved", failed=failed)

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime) -> None:
        """Say that these were recalled; returns at once."""
        if not seqs:
            return
        with self._lock:
            self._marks.setdefault(owner, {}).update(dict.fromkeys(seqs, at))
        self._later.wake()

    def shown(self, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
        """The memories with the marks that wait to be written."""
        with self._lock:
            times = {**self._in_hand.get(owner, {}), **self._marks.get(owner, {})}
        return (
            [self._marked(memory, times.get(memory_seq(memory.id) or 0)) for memory in memories] if times else memories
        )

    def flush(self) -> None:
        """Write down what has gathered.

        Raises: StoreError.
        """
        with self._writing:  # so that who needs them written waits also for what another thread is about to write
            with self._lock:
                marks, self._marks = self._marks, {}
                self._in_hand = dict(marks)
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
                    self._in_hand = {}

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._later.close()

    def _marked(self, memory: Memory, at: datetime | None) -> Memory:
        if at is None or memory.kind in self._unmarked:
            return memory
        known = memory.last_retrieved_at
        return memory if known is not None and known >= at else replace(memory, last_retrieved_at=at)


def _by_second(times: Mapping[int, datetime]) -> Iterator[tuple[datetime, Sequence[int]]]:
    """What was recalled within the same second is written at once, with the latest of its times: a hundred recalls in
    a second would otherwise be a hundred transactions."""
    seconds: dict[int, list[int]] = {}
    for seq, at in times.items():
        seconds.setdefault(int(at.timestamp()), []).append(seq)
    for seqs in seconds.values():
        yield max(times[seq] for seq in seqs), seqs
