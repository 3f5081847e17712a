"""Search for near-duplicate memories, so that they can be merged.

It never waits for an embedder: memories are compared by their words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from wellkept.errors import WellkeptError
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.memory import rules_duplicates as duplicates
from wellkept.memory.rules_kinds import UNIQUE
from wellkept.model import Kind, Match, Memory, Owner
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

CANDIDATES = 10
"""Candidates to compare; a near-duplicate ranks among the very nearest by its words."""

log = logging.getLogger("wellkept")


class Similar:
    """Service that finds near-duplicates among an agent's memories of the same kind and user."""

    def __init__(self, store: SqlStore, embedding: Embedding, now: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now

    def __call__(self, owner: Owner, memory: str | Memory, *, kinds: Collection[Kind] = ()) -> Sequence[Memory]:
        """Return the near-duplicates of a memory, or of the one with this id, most similar first.

        They are of the same kind, or of these `kinds`.

        Raises: NotFound.
        """
        if isinstance(memory, str):
            memory = self._store.get_memory(owner, memory)
        known = {memory_seq(memory.id), memory_seq(memory.supersedes or "")}
        seqs = {match.seq for match in self._find_candidates(memory.home, memory.text, kinds or [memory.kind])} - known
        if not seqs:
            return []
        others = self._store.find_memories(owner, sorted(seqs)).values()
        alike = [other for other in others if duplicates.is_near_duplicate(memory.text, other.text)]
        return sorted(alike, key=lambda other: -duplicates.compute_similarity(memory.text, other.text))

    def find_related(self, owner: Owner, text: str, *, kinds: Collection[Kind], limit: int) -> Sequence[Memory]:
        """Return live memories that share words with a text or are near to it in meaning, oldest first."""
        now, vector = self._now(), self._embedding.of_query(text)
        self._embedding.prepare(owner)
        found = [*self._store.search_memories(owner, text, kinds=kinds, now=now, limit=limit)]
        if vector is not None:
            found += self._store.nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        # Half by words and half by meaning, if there are too many.
        seqs = dict.fromkeys(match.seq for pair in zip_longest(found[:limit], found[limit:]) for match in pair if match)
        return list(self._store.find_memories(owner, sorted([*seqs][:limit])).values())

    def _find_candidates(self, owner: Owner, text: str, kinds: Collection[Kind]) -> Sequence[Match]:
        # Every write asks, so nothing is embedded. Near-duplicates share most of their words.
        return self._store.search_memories(owner, text, kinds=kinds, now=self._now(), limit=CANDIDATES)


def find_lookalikes(similar: Callable[[Memory], Sequence[Memory]], kept: Memory) -> Sequence[Memory]:
    """Return the near-duplicates of a memory that was just stored, for the answer to the write.

    Never raises: the memory is already stored.
    """
    if kept.kind not in UNIQUE:
        return ()
    try:
        return similar(kept)
    except WellkeptError as error:
        log.warning("Memory %s is stored but was not compared with others: %s", kept.id, error)
        return ()
