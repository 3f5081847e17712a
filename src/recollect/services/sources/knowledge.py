"""What the tenant's documents say."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Chunk, Document, Match, Source
from recollect.policy import merging, ranking
from recollect.policy.text import content_hash
from recollect.ports import KnowledgeStore
from recollect.services.sources.question import Candidate, Found, Question

CANDIDATES = 10
IMPORTANCE = 0.5
"""Nobody has said how much a passage matters."""

MEANING_FLOOR = 0.3
"""A passage without a word of the question has to be this close to it: unrelated texts come near this."""


class Knowledge:
    """Passages of published documents, by words and by meaning."""

    name = Source.KNOWLEDGE

    def __init__(self, store: KnowledgeStore, *, words_share: float) -> None:
        self._store = store
        self._words_share = words_share

    def find(self, question: Question, *, depth: int = 1) -> Found:
        tenant, limit = question.owner.tenant, max(CANDIDATES, question.limit) * depth
        words = _scores(self._store.search_chunks(tenant, question.text, limit=limit))
        vector = question.vector()
        nearest = () if vector is None else self._store.nearest_chunks(tenant, vector, limit=limit)
        near = {match.seq: match.score for match in nearest if match.seq in words or match.score >= MEANING_FLOOR}
        similarity = ranking.hybrid(words, near, words_share=self._words_share)
        best = sorted(similarity, key=lambda seq: -similarity[seq])[:limit]
        chunks = self._store.find_chunks(tenant, best)
        documents = self._store.find_documents(tenant, {chunk.document_id for chunk in chunks.values()})
        candidates = [
            _candidate(chunks[seq], documents[chunks[seq].document_id], similarity[seq])
            for seq in best
            if seq in chunks and chunks[seq].document_id in documents
        ]
        known = [each for each in candidates if not question.is_past or each.created_at <= question.now]
        texts = [each.text for each in known[: merging.LOOKED_AT]]
        return Found(candidates=known, strength=merging.strength(question.text, texts, near.values()))


def _scores(matches: Sequence[Match]) -> dict[int, float]:
    return {match.seq: match.score for match in matches}


def _candidate(chunk: Chunk, document: Document, similarity: float) -> Candidate:
    return Candidate(
        source=Source.KNOWLEDGE,
        id=f"{chunk.document_id}#{chunk.position}",
        text=chunk.text,
        similarity=similarity,
        importance=IMPORTANCE,
        created_at=document.updated_at,
        content_hash=content_hash(chunk.text),
    )
