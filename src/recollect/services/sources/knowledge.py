"""What the tenant's documents say."""

from __future__ import annotations

from recollect.model import Source
from recollect.policy import merging
from recollect.services.passages import Passage, Passages
from recollect.services.sources.question import Candidate, Found, Question

CANDIDATES = 10
IMPORTANCE = 0.5
"""Nobody has said how much a passage matters."""


class Knowledge:
    """Passages of published documents, in the categories the agent may see."""

    name = Source.KNOWLEDGE

    def __init__(self, passages: Passages) -> None:
        self._passages = passages

    def find(self, question: Question, *, depth: int = 1) -> Found:
        limit = max(CANDIDATES, question.limit) * depth
        found = self._passages.for_agent(question.owner, question.text, question.vector(), limit=limit)
        candidates = [_candidate(passage) for passage in found.passages]
        known = [each for each in candidates if not question.is_past or each.created_at <= question.now]
        texts = [each.text for each in known[: merging.LOOKED_AT]]
        return Found(candidates=known, strength=merging.strength(question.text, texts, found.nearness))


def _candidate(passage: Passage) -> Candidate:
    return Candidate(
        source=Source.KNOWLEDGE,
        id=passage.id,
        text=passage.chunk.text,
        similarity=passage.similarity,
        importance=IMPORTANCE,
        created_at=passage.document.updated_at,
        document=passage.document,
    )
