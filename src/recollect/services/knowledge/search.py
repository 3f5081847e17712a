"""Search documents for passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recollect.model import Chunk, Document, Hit, Match, Owner, Source
from recollect.policy.documents import check_categories
from recollect.policy.recall import ranking
from recollect.policy.recall.purposes import is_unverified
from recollect.ports import Store, Vector
from recollect.services.background.embedding import Embedding
from recollect.services.memories.loop_guard import LoopGuard
from recollect.services.recall.recall import check_limit, check_query

CANDIDATES = 50
"""Minimum candidates of each search; with fewer, each search misses more of the other's passages."""

MEANING_FLOOR = 0.3
"""Minimum similarity of a passage that shares no word with the query; unrelated texts reach nearly this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Passage that matches a query, with its similarity from 0 to 1."""

    chunk: Chunk
    document: Document
    similarity: float
    cosine: float | None = None  # to the query; None: it was found by its words alone

    @property
    def id(self) -> str:
        """Id of the document and position of the passage."""
        return f"{self.document.id}#{self.chunk.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageMatches:
    """Passages, best first, and the similarities of the nearest by meaning alone."""

    passages: Sequence[Passage] = ()
    nearness: Sequence[float] = ()


class PassageSearch:
    """Search for passages of published documents, by words and by meaning."""

    def __init__(self, store: Store, *, words_share: float) -> None:
        self._store = store
        self._words_share = words_share

    def find(
        self, tenant: str, query: str, vector: Vector | None, *, categories: Collection[str] = (), limit: int
    ) -> PassageMatches:
        """Return the best passages. Without categories, search all of them."""
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
            Passage(
                chunk=chunks[seq],
                document=documents[chunks[seq].document_id],
                similarity=similarity[seq],
                cosine=near.get(seq),
            )
            for seq in best
            if seq in chunks and chunks[seq].document_id in documents
        ]
        return PassageMatches(passages=found, nearness=list(near.values()))

    def for_agent(
        self, owner: Owner, query: str, vector: Vector | None, *, categories: Collection[str] = (), limit: int
    ) -> PassageMatches:
        """Return the best passages within the categories the agent is limited to."""
        agent = self._store.find_agent(owner)
        limits = set(agent.knowledge_categories) if agent is not None else set()
        if limits:
            categories = limits.intersection(categories) if categories else limits
            if not categories:
                return PassageMatches()
        return self.find(owner.tenant, query, vector, categories=categories, limit=limit)


def _scores(matches: Sequence[Match]) -> dict[int, float]:
    return {match.seq: match.score for match in matches}


WEIGHTS = {"similarity": 1.0}

SPARE = 10
"""Factor of passages read over passages returned, if some of them are unverified."""


class SearchKnowledge:
    """Service that returns the passages most similar to a query."""

    def __init__(self, passages: PassageSearch, embedding: Embedding, echoes: LoopGuard) -> None:
        self._passages = passages
        self._embedding = embedding
        self._echoes = echoes

    def __call__(self, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """Return the best passages of a tenant.

        Raises: Invalid.
        """
        query, categories = check_query(query), check_categories(categories)
        check_limit(limit)
        vector = self._embedding.of_query(query)
        return _make_hits(self._passages.find(tenant, query, vector, categories=categories, limit=limit))

    def for_agent(self, owner: Owner, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """Return the best passages within the categories the agent is limited to.

        Raises: Invalid.
        """
        query, categories = check_query(query), check_categories(categories)
        check_limit(limit)
        vector = self._embedding.of_query(query)
        hits = _make_hits(self._passages.for_agent(owner, query, vector, categories=categories, limit=limit))
        # Unverified passages only get places that are left.
        if any(map(is_unverified, hits)):
            more = self._passages.for_agent(owner, query, vector, categories=categories, limit=SPARE * limit)
            hits = sorted(_make_hits(more), key=is_unverified)[:limit]
        self._echoes.shown(owner, [hit.text for hit in hits])
        return hits


def _make_hits(found: PassageMatches) -> Sequence[Hit]:
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
