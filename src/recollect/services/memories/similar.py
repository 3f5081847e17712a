"""Search for near-duplicate memories, so that they can be merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.lazy import LazyModule
from recollect.model import Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.ports import Clock, MemoryStore
from recollect.services.background.embedding import Embedding

if TYPE_CHECKING:
    from recollect.policy.memories import duplicates
else:
    duplicates = LazyModule("recollect.policy.memories.duplicates")

CANDIDATES = 10
"""Candidates taken from each search; a near-duplicate ranks among the very nearest in both."""


class Similar:
    """Service that finds near-duplicates among an agent's memories of the same kind."""

    def __init__(self, store: MemoryStore, embedding: Embedding, now: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now

    def __call__(self, owner: Owner, id: str) -> Sequence[Memory]:
        """Return the near-duplicates of a memory, most similar first.

        Raises: NotFound.
        """
        memory = self._store.get_memory(owner, id)
        others = self._find_candidates(memory).values()
        alike = [other for other in others if other.id != id and duplicates.is_near_duplicate(memory.text, other.text)]
        return sorted(alike, key=lambda other: -duplicates.compute_similarity(memory.text, other.text))

    def _find_candidates(self, memory: Memory) -> dict[int, Memory]:
        now, kinds = self._now(), [Kind(memory.kind)]
        words = self._store.search_memories(memory.owner, memory.text, kinds=kinds, now=now, limit=CANDIDATES)
        vector = self._embedding.of_query(memory.text)
        near = (
            []
            if vector is None
            else self._store.nearest_memories(memory.owner, vector, kinds=kinds, now=now, limit=CANDIDATES)
        )
        known = {memory_seq(memory.id), memory_seq(memory.supersedes or "")}
        seqs = {match.seq for match in (*words, *near)} - known
        return dict(self._store.find_memories(memory.owner, sorted(seqs)))
