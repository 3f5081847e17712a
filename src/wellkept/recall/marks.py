"""Retrieval marks: record that memories were recalled, without delaying the recall.

A mark also moves the end of an episode, and of an item whose life a reading extends.

Marks are queued and written in batches by a thread; reads of a memory include its queued mark. A crash loses the marks
of the last second, and those memories fade a little sooner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from wellkept.language.names import memory_seq
from wellkept.memory.rules_items import end_of
from wellkept.memory.rules_lifetime import LIFETIMES, Lifetimes
from wellkept.model import BackgroundStatus, Kind, Memory, Owner
from wellkept.upkeep.writer import BackgroundWriter

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_MARKS = 100_000
"""Maximum number of queued marks; beyond it, the marks of whole agents are dropped, the oldest first."""


@dataclass(frozen=True, slots=True)
class _Queued:
    """Queued marks of an agent: when each memory was recalled last, and the recalls of each day."""

    times: Mapping[int, datetime]
    recalls: Mapping[date, int]

    def join(self, newer: _Queued) -> _Queued:
        days = {day: self.recalls.get(day, 0) + newer.recalls.get(day, 0) for day in {**self.recalls, **newer.recalls}}
        return _Queued({**self.times, **newer.times}, days)


class RetrievalMarks:
    """Queue of retrieval marks, and of the number of recalls."""

    def __init__(self, store: SqlStore, *, unmarked: Collection[Kind] = (), lifetimes: Lifetimes = LIFETIMES) -> None:
        """Set up the queue; `unmarked` are kinds in a storage that cannot hold a mark."""
        self._store = store
        self._lifetimes = lifetimes
        self._unmarked = frozenset(unmarked)
        self._writer = BackgroundWriter[Owner, _Queued](
            self._write,
            merge=_Queued.join,
            name="retrieved",
            failed="Recalled memories could not be marked as such",
            size=lambda queued: len(queued.times) + 1,
            max_size=MAX_MARKS,
        )

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime, *, recalls: int = 0) -> None:
        """Queue marks for recalled memories, count the recalls, and return at once."""
        if seqs or recalls:
            days = {at.astimezone(UTC).date(): recalls} if recalls else {}
            self._writer.add(owner.whole, _Queued(dict.fromkeys(seqs, at), days))

    def apply(self, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
        """Return the memories with their queued marks applied."""
        queued = self._writer.peek(owner.whole)
        if queued is None:
            return memories
        return [self._apply_mark(memory, queued.times.get(memory_seq(memory.id) or 0)) for memory in memories]

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

    def _write(self, owner: Owner, queued: _Queued) -> None:
        for at, seqs in _group_by_second(queued.times):
            self._store.mark_retrieved(owner, seqs, at=at, lifetimes=self._lifetimes)
        # Last: marks may be written again if this fails, but no recall is counted twice.
        if queued.recalls:
            self._store.count_recalls(owner, queued.recalls)

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
