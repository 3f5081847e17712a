"""Retrieval marks: record that memories were recalled, without delaying the recall.

A mark also moves the end of an episode, and of an item whose life a reading extends.

Marks are queued and written in batches by a thread; reads of a memory include its queued mark. A crash loses the marks
of the last second, and those memories fade a little sooner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.model import BackgroundStatus, Kind, Memory, Owner
from recollect.policy.items import end_of
from recollect.policy.memories.categories import LIFETIMES, Lifetimes
from recollect.policy.names import memory_seq
from recollect.ports import MaintenanceStore
from recollect.services.background.writer import BackgroundWriter

MAX_MARKS = 100_000
"""Maximum number of queued marks; beyond it, the marks of whole agents are dropped, the oldest first."""


class RetrievalMarks:
    """Queue of retrieval marks."""

    def __init__(
        self, store: MaintenanceStore, *, unmarked: Collection[Kind] = (), lifetimes: Lifetimes = LIFETIMES
    ) -> None:
        """Set up the queue; `unmarked` are kinds in a storage that cannot hold a mark."""
        self._store = store
        self._lifetimes = lifetimes
        self._unmarked = frozenset(unmarked)
        self._writer = BackgroundWriter[Owner, Mapping[int, datetime]](
            self._write,
            merge=lambda older, newer: {**older, **newer},
            name="retrieved",
            failed="Recalled memories could not be marked as such",
            size=len,
            max_size=MAX_MARKS,
        )

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime) -> None:
        """Queue marks for recalled memories and return at once."""
        if seqs:
            self._writer.add(owner.whole, dict.fromkeys(seqs, at))

    def apply(self, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
        """Return the memories with their queued marks applied."""
        times = self._writer.peek(owner.whole)
        return (
            [self._apply_mark(memory, times.get(memory_seq(memory.id) or 0)) for memory in memories]
            if times
            else memories
        )

    def flush(self, tenant: str | None = None) -> None:
        """Write the queued marks of one tenant or of all; marks that cannot be written stay queued."""
        self._writer.flush(lambda owner: tenant in (None, owner.tenant))

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued marks and stop the thread.

        Raises: StoreError.
        """
        self._writer.close()

    def _write(self, owner: Owner, times: Mapping[int, datetime]) -> None:
        for at, seqs in _group_by_second(times):
            self._store.mark_retrieved(owner, seqs, at=at, lifetimes=self._lifetimes)

    def _apply_mark(self, memory: Memory, at: datetime | None) -> Memory:
        if at is None or memory.kind in self._unmarked:
            return memory
        known, end = memory.last_retrieved_at, memory.expires_at
        if known is not None and known >= at:
            return memory
        # The item was alive when it was read, even if the mark of an earlier reading is not stored yet.
        if end is not None and (until := end_of(at, memory.ttl_seconds)) is not None:
            end = max(end, until)
        return replace(memory, last_retrieved_at=at, expires_at=end)


def _group_by_second(times: Mapping[int, datetime]) -> Iterator[tuple[datetime, Sequence[int]]]:
    """Group marks by second, each group with its latest time.

    Otherwise, a hundred recalls in a second would be a hundred transactions.
    """
    seconds: dict[int, list[int]] = {}
    for seq, at in times.items():
        seconds.setdefault(int(at.timestamp()), []).append(seq)
    for seqs in seconds.values():
        yield max(times[seq] for seq in seqs), seqs
