"""Asking a tenant's documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recollect.model import Hit, Owner, Source
from recollect.policy.documents import checked_categories
from recollect.policy.purposes import is_unverified
from recollect.services.echoes import Echoes
from recollect.services.embedding import Embedding
from recollect.services.passages import FoundPassages, Passages
from recollect.services.recall import checked_limit, checked_query

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
