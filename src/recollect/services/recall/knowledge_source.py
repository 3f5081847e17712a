"""What the tenant's documents say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from recollect.lazy import LazyModule
from recollect.model import Source
from recollect.policy.recall import ranking
from recollect.services.knowledge.search import Passage, PassageSearch
from recollect.services.recall.question import Candidate, Question, SourceAnswer

if TYPE_CHECKING:
    from recollect.policy.memories import instructions
else:
    instructions = LazyModule("recollect.policy.memories.instructions")

CANDIDATES = 10
STEP, MOST = 4, 200
"""So many times more passages are read, up to `MOST`, while some that read like instructions take others' places."""

IMPORTANCE = 0.5
"""Nobody has said how much a passage matters."""


class KnowledgeSource:
    """Passages of published documents, in the categories the agent may see."""

    name = Source.KNOWLEDGE

    def __init__(self, passages: PassageSearch) -> None:
        self._passages = passages

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        limit = max(CANDIDATES, question.limit) * depth
        while True:
            found = self._passages.for_agent(question.owner, question.text, question.vector, limit=limit)
            texts = [passage.chunk.text for passage in found.passages]
            if len(texts) < limit or limit >= MOST or _has_enough(texts, question.limit):
                break
            limit *= STEP
        candidates = [_candidate(passage) for passage in found.passages]
        known = [each for each in candidates if not question.is_past or each.created_at <= question.now]
        texts = [each.text for each in known[: ranking.STRENGTH_SAMPLE]]
        return SourceAnswer(candidates=known, strength=ranking.source_strength(question.text, texts, found.nearness))


def _has_enough(texts: Iterable[str], wanted: int) -> bool:
    clear = (text for text in texts if instructions.find_instruction(text) is None)
    return len(list(islice(clear, wanted))) == wanted


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
