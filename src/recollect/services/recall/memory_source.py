"""What the agent itself has kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recollect.model import Owner, Source
from recollect.policy.memories.trust import Judge, is_suspicious
from recollect.policy.names import memory_id
from recollect.policy.recall import ranking, similarity
from recollect.policy.recall.question import ParsedQuery
from recollect.ports import MemoryStore, MemorySummary
from recollect.services.recall.question import Candidate, Question, SourceAnswer

CANDIDATES = similarity.FIELD
STEP, MOST = 4, 2000
"""How many are read and ranked, at least: those behind them share a tenth of the room, and nothing lifts them out.
So many times more are read, up to `MOST`, while flagged memories take the places of others."""


class MemorySource:
    """An agent's memories of every kind, by words, meaning, conversation, speaker and date."""

    name = Source.MEMORY

    def __init__(self, store: MemoryStore, judge: Judge, *, words_share: float) -> None:
        self._store = store
        self._judge = judge
        self._words_share = words_share

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        asked = ParsedQuery.read(question.text, question.now)
        evidence = self._store.weigh_memories(
            question.owner,
            asked.terms,
            question.vector,
            kinds=question.kinds,
            now=question.now,
            is_past=question.is_past,
        )
        limit = max(CANDIDATES, question.limit) * depth
        while True:
            likeness = similarity.find_best(evidence, asked, words_share=self._words_share, limit=limit)
            candidates = self._candidates(question, likeness)
            if len(likeness) < limit or limit >= MOST or self._has_enough(candidates, question.limit):
                break
            limit *= STEP
        texts = [each.text for each in candidates[: ranking.STRENGTH_SAMPLE]]
        return SourceAnswer(
            candidates=candidates, strength=ranking.source_strength(question.text, texts, similarity.nearest(evidence))
        )

    def _candidates(self, question: Question, likeness: Mapping[int, float]) -> Sequence[Candidate]:
        glimpses = self._store.find_glimpses(question.owner, list(likeness))
        return [
            _candidate(question.owner, glimpse, similarity)
            for seq, similarity in likeness.items()
            if (glimpse := glimpses.get(seq)) is not None and (not question.is_past or glimpse.since <= question.now)
        ]

    def _has_enough(self, candidates: Iterable[Candidate], wanted: int) -> bool:
        """Return True if so many are not flagged as suspicious, or if none of them is."""
        clear, is_any_flagged = 0, False
        for each in candidates:
            memory = each.memory
            if memory is not None and is_suspicious(self._judge(memory)):
                is_any_flagged = True
            elif (clear := clear + 1) == wanted:
                return True
        return not is_any_flagged


def _candidate(owner: Owner, glimpse: MemorySummary, similarity: float) -> Candidate:
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
