"""Search documents for passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recollect.model import Chunk, Document, Hit, Match, Owner, Source
from recollect.policy.documents import checked_categories
from recollect.policy.recall import ranking
from recollect.policy.recall.purposes import is_unverified
from recollect.ports import Store, Vector
from recollect.services.background.embedding import Embedding
from recollect.services.memories.loop_guard import Echoes
from recollect.services.recall.recall import checked_limit, checked_query

CANDIDATES = 50
"""How many passages each way of searching proposes at least: the fewer, the more one of them misses of the other's."""

MEANING_FLOOR = 0.3
"""A passage without a word of the question has to be this close to it: unrelated texts come near this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage that fits a question, and how well: 0 to 1."""

    chunk: Chunk
    document: Document
    similarity: float

    @property
    def id(self) -> str:
        return f"{self.document.id}#{self.chunk.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassages:
    """The best first, and how near the nearest came by meaning alone."""

    passages: Sequence[Passage] = ()
    nearness: Sequence[float] = ()


class Passages:
    """Passages of published documents, by words and by meaning."""

    def __init__(self, store: Store, *, words_share: float) -> None:
        self._store = store
        self._words_share = words_share

    def find(
        self, tenant: str, query: str, vector: Vector | None, *, categories: Collection[str] = (), limit: int
    ) -> FoundPassages:
        """No category means all of them."""
        depth = max(CANDIDATES, limit)
        words = _scores(self._store.search_chunks(tenant, query, categories=categories, limit=depth))
        nearest = (
            () if vector is None else self._store.nearest_chunks(tenant, vector, categories=categories, limit=depth)
        )
        near = {match.seq: match.score for match in nearest if match.seq in words or match.score >= MEANING_FLOOR}
        similarity = ranking.hybrid(words, near, words_share=self._words_share)
        best = sorted(similarity, key=lambda seq: -similarity[seq])[:limit]
        chunks = self._store.find_chunks(tenant, best)
        documents = self._store.find_documents(tenant, {chunk.document_id for chunk in chunks.values()})
        found = [
            Passage(chunk=chunks[seq], document=documents[chunks[seq].document_id], similarity=similarity[seq])
            for seq in best
            if seq in chunks and chunks[seq].document_id in documents
        ]
        return FoundPassages(passages=found, nearness=list(near.values()))

    def for_agent(
        self, owner: Owner, query: str, vector: Vector | None, *, categories: Collection[str] = (), limit: int
    ) -> FoundPassages:
        """The same, within the categories the agent is limited to: others are as if they were not there."""
        agent = self._store.find_agent(owner)
        limits = set(agent.knowledge_categories) if agent is not None else set()
        if limits:
            categories = limits.intersection(categories) if categories else limits
            if not categories:
                return FoundPassages()
        return self.find(owner.tenant, query, vector, categories=categories, limit=limit)


def _scores(matches: Sequence[Match]) -> dict[int, float]:
    return {match.seq: match.score for match in matches}


WEIGHTS = {"similarity": 1.0}

SPARE = 10
"""How many times more passages are read if some read like instructions."""


class SearchKnowledge:
    """Passages that fit a question best, ranked by how well they fit and nothing else."""

    def __init__(self, passages: Passages, embedding: Embedding, echoes: Echoes) -> None:
        self._passages = passages
        self._embedding = embedding
        self._echoes = echoes

    def __call__(self, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """Raises: Invalid."""
        query, wanted = checked_query(query), checked_categories(categories)
        checked_limit(limit)
        vector = self._embedding.of_query(query)
        return _hits(self._passages.find(tenant, query, vector, categories=wanted, limit=limit))

    def for_agent(self, owner: Owner, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """Within the categories the agent is limited to.

        Raises: Invalid.
        """
        query, wanted = checked_query(query), checked_categories(categories)
        checked_limit(limit)
        vector = self._embedding.of_query(query)
        hits = _hits(self._passages.for_agent(owner, query, vector, categories=wanted, limit=limit))
        if any(map(is_unverified, hits)):  # it only gets the places that others leave
            more = self._passages.for_agent(owner, query, vector, categories=wanted, limit=SPARE * limit)
            hits = sorted(_hits(more), key=is_unverified)[:limit]
        self._echoes.shown(owner, [hit.text for hit in hits])
        return hits


def _hits(found: FoundPassages) -> Sequence[Hit]:
    return [
        Hit(
            source=Source.KNOWLEDGE,
            id=passage.id,
            text=passage.chunk.text,
            score=passage.similarity,
            parts={"similarity": passage.similarity},
            weights=WEIGHTS,
            created_at=passage.document.updated_at,
            document=passage.document,
        )
        for passage in found.passages
    ]
