"""What the agent itself has kept."""

from __future__ import annotations

from datetime import datetime

from recollect.model import Memory, Source
from recollect.policy import merging, similarity
from recollect.policy.question import Asked
from recollect.policy.text import content_hash
from recollect.ports import MemoryStore
from recollect.services.sources.question import Candidate, Found, Question

CANDIDATES = 50
"""How many of the most similar are proposed, at least."""


class OwnMemories:
    """An agent's memories of every kind, by words, meaning, conversation, speaker and date."""

    name = Source.MEMORY

    def __init__(self, store: MemoryStore, *, words_share: float) -> None:
        self._store = store
        self._words_share = words_share

    def find(self, question: Question, *, depth: int = 1) -> Found:
        asked, vector = Asked.read(question.text, question.now), question.vector()
        evidence = self._store.weigh_memories(
            question.owner, asked.terms, vector, kinds=question.kinds, now=question.now, is_past=question.is_past
        )
        limit = max(CANDIDATES, question.limit) * depth
        likeness = similarity.best(evidence, asked, words_share=self._words_share, limit=limit)
        memories = self._store.find_memories(question.owner, list(likeness))
        candidates = [
            _candidate(memories[seq], likeness[seq])
            for seq in likeness
            if seq in memories and (not question.is_past or _since(memories[seq]) <= question.now)
        ]
        texts = [each.text for each in candidates[: merging.LOOKED_AT]]
        return Found(
            candidates=candidates, strength=merging.strength(question.text, texts, similarity.nearest(evidence))
        )


def _since(memory: Memory) -> datetime:
    return memory.valid_from or memory.created_at


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
