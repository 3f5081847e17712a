"""Recall source for the documents of a tenant."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from wellkept.knowledge.search import Passage, PassageSearch
from wellkept.memory import rules_trust as instructions
from wellkept.model import Source
from wellkept.recall.question import Candidate, Question, SourceAnswer

CANDIDATES = 10
"""Minimum number of passages to read."""

STEP, MOST = 4, 200
"""Passages that read like instructions rank last, so more are read to replace them.

The number read grows by the factor `STEP` until enough others are found or it has reached `MOST`.
"""

IMPORTANCE = 0.5
"""Importance of every passage: the middle of the range, because documents have no rating."""


class KnowledgeSource:
    """Passages of published documents in the categories that the agent may see."""

    name = Source.KNOWLEDGE

    def __init__(self, passages: PassageSearch) -> None:
        self._passages = passages

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        limit = max(CANDIDATES, question.limit) * depth
        while True:
            found = self._passages.for_agent(question.owner, question.text, question.vector, limit=limit)
            texts = [passage.chunk.text for passage in found]
            if len(texts) < limit or limit >= MOST or _has_enough(texts, question.limit):
                break
            limit *= STEP
        candidates = [_make_candidate(passage) for passage in found]
        # A document edited since is left out: its earlier text is not kept.
        visible = [each for each in candidates if not question.is_past or each.created_at <= question.now]
        return SourceAnswer(candidates=visible)


def _has_enough(texts: Iterable[str], needed: int) -> bool:
    """Return True if at least `needed` texts do not read like instructions."""
    unflagged = (text for text in texts if instructions.find_instruction(text) is None)
    return len(list(islice(unflagged, needed))) == needed


def _make_candidate(passage: Passage) -> Candidate:
    return Candidate(
        source=Source.KNOWLEDGE,
        id=passage.id,
        text=passage.chunk.text,
        similarity=passage.similarity,
        importance=IMPORTANCE,
        created_at=passage.document.updated_at,
        document=passage.document,
        held=passage.held,
    )
