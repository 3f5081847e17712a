"""What the agent itself has kept."""

from __future__ import annotations

from recollect.model import Owner, Source
from recollect.policy import merging, similarity
from recollect.policy.names import memory_id
from recollect.policy.question import Asked
from recollect.ports import Glimpse, MemoryStore
from recollect.services.sources.question import Candidate, Found, Question

CANDIDATES = similarity.FIELD
"""How many are read and ranked, at least: those behind them share a tenth of the room, and nothing lifts them out."""


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
        glimpses = self._store.find_glimpses(question.owner, list(likeness))
        candidates = [
            _candidate(question.owner, glimpse, similarity)
            for seq, similarity in likeness.items()
            if (glimpse := glimpses.get(seq)) is not None and (not question.is_past or glimpse.since <= question.now)
        ]
        texts = [each.text for each in candidates[: merging.LOOKED_AT]]
        return Found(
            candidates=candidates, strength=merging.strength(question.text, texts, similarity.nearest(evidence))
        )


def _candidate(owner: Owner, glimpse: Glimpse, similarity: float) -> Candidate:
    return Candidate(
        source=Source.MEMORY,
        id=memory_id(glimpse.seq),
        text=glimpse.text,
        similarity=similarity,
        importance=glimpse.importance,
        created_at=glimpse.created_at,
        seq=glimpse.seq,
        whole=glimpse.whole,
        agent_id=owner.agent,
    )
