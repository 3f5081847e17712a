"""Noting that memories were recalled, without making the recall wait.

What was recalled gathers here and a thread writes it down in batches; who reads a memory meanwhile is told of its mark
all the same. After a crash the last second's marks are missing, which only lets those memories fade a little sooner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.model import BackgroundStatus, Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.ports import MaintenanceStore
from recollect.services.background.writer import Later

MAX_MARKS = 100_000
"""Marks that may wait for the store to work again; beyond, those of the agent that waits longest are given up."""


class Retrieved:
    """The marks that wait to be written."""

    def __init__(self, store: MaintenanceStore, *, unmarked: Collection[Kind] = ()) -> None:
        """`unmarked` are kinds that are kept where there is no place for a mark."""
        self._store = store
        self._unmarked = frozenset(unmarked)
        self._later = Later[Owner, Mapping[int, datetime]](
            self._write,
            merge=lambda older, newer: {**older, **newer},
            name="retrieved",
            failed="Recalled memories could not be marked as such",
            size=len,
            max_size=MAX_MARKS,
        )

    def mark(self, owner: Owner, seqs: Sequence[int], at: datetime) -> None:
        """Say that these were recalled; returns at once."""
        if seqs:
            self._later.add(owner, dict.fromkeys(seqs, at))

    def shown(self, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
        """The memories with the marks that wait to be written."""
        times = self._later.peek(owner)
        return (
            [self._marked(memory, times.get(memory_seq(memory.id) or 0)) for memory in memories] if times else memories
        )

    def flush(self, tenant: str | None = None) -> None:
        """Write down what has gathered, of one tenant or of all; what cannot be written goes on waiting."""
        self._later.flush(lambda owner: tenant in (None, owner.tenant))

    def status(self) -> BackgroundStatus:
        return self._later.status()

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._later.close()

    def _write(self, owner: Owner, times: Mapping[int, datetime]) -> None:
        for at, seqs in _by_second(times):
            self._store.mark_retrieved(owner, seqs, at=at)

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
