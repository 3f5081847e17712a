"""What the agent itself has kept."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.model import Memory, Source
from recollect.policy import merging, ranking
from recollect.policy.text import content_hash
from recollect.ports import MemoryStore, Vector
from recollect.services.sources.question import PAST_STEP, Candidate, Found, Question

CANDIDATES = 50
"""How many each way of searching may propose, at least."""


class OwnMemories:
    """An agent's memories of every kind, by words and by meaning."""

    name = Source.MEMORY

    def __init__(self, store: MemoryStore, *, words_share: float) -> None:
        self._store = store
        self._words_share = words_share

    def find(self, question: Question, *, depth: int = 1) -> Found:
        vector, limit = question.vector(), max(CANDIDATES, question.limit) * depth
        wanted = limit
        while True:
            words, near = self._matches(question, vector, limit)
            similarity = ranking.hybrid(words, near, words_share=self._words_share)
            memories = self._store.find_memories(question.owner, list(similarity))
            candidates = [
                _candidate(memory, similarity[seq])
                for seq, memory in memories.items()
                if not question.is_past or (memory.valid_from or memory.created_at) <= question.now
            ]
            if not question.is_past or len(candidates) >= wanted or len(similarity) < limit:
                break
            limit *= PAST_STEP
        candidates.sort(key=lambda each: -each.similarity)
        texts = [each.text for each in candidates[: merging.LOOKED_AT]]
        return Found(candidates=candidates, strength=merging.strength(question.text, texts, near.values()))

    def _matches(
        self, question: Question, vector: Vector | None, limit: int
    ) -> tuple[Mapping[int, float], Mapping[int, float]]:
        owner, kinds, now = question.owner, question.kinds, question.now
        words = self._store.search_memories(owner, question.text, kinds=kinds, now=now, limit=limit)
        near = [] if vector is None else self._store.nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        return {each.seq: each.score for each in words}, {each.seq: each.score for each in near}


def _candidate(memory: Memory, similarity: float) -> Candidate:
    return Candidate(
        source=Source.MEMORY,
        id=memory.id,
        text=memory.text,
        similarity=similarity,
        importance=memory.importance,
        created_at=memory.created_at,
        content_hash=content_hash(memory.text),
        memory=memory,
        agent_id=memory.owner.agent,
    )
