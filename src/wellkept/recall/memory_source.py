"""Recall source for the memories of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wellkept.facts.rules_profile import PAST, asks_past, mark_ended
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import is_part_of_term
from wellkept.memory.rules_trust import Judge, is_suspicious
from wellkept.model import HeldWord, Owner, Source, State
from wellkept.model.stored import MemorySummary
from wellkept.recall.question import Candidate, Question, SourceAnswer
from wellkept.recall.rules_matching import find_best
from wellkept.recall.rules_question import ParsedQuery
from wellkept.recall.rules_rare_words import MAX_READ, RareWord, find_held_words, find_rare_words, nominate
from wellkept.recall.rules_similarity import Evidence

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

LONG_AGO = datetime(1970, 1, 2, tzinfo=UTC)

CANDIDATES = 20
"""Minimum number of memories to rank by recency and importance as well."""

STEP, MOST = 4, 2000
"""Suspicious memories rank last, so more are read to replace them.

The number read grows by the factor `STEP` until enough others are found or it has reached `MOST`.
"""


class MemorySource:
    """Memories of an agent, searched by words, meaning, conversation, speaker and date."""

    name = Source.MEMORY

    def __init__(self, store: SqlStore, judge: Judge) -> None:
        self._store = store
        self._judge = judge

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        query = ParsedQuery.read(question.text, question.now)
        with_ended = not question.is_past and asks_past(question.text)
        evidence = self._store.weigh_memories(
            question.owner,
            query.lookups,
            question.answer_vector,
            kinds=question.kinds,
            # Before this time nothing had ended, so what ended since is found as well.
            now=LONG_AGO if with_ended else question.now,
            is_past=question.is_past,
            where=question.where,
        )
        if any(map(is_part_of_term, query.terms)):
            evidence = self._add_parts(evidence, query, question)
        words, nominated = self._nominate(evidence, query, question)
        limit = max(CANDIDATES, question.limit) * depth
        while True:
            similarities = find_best(evidence, query, limit=limit)
            candidates = self._make_candidates(question, similarities, words, nominated, with_ended=with_ended)
            if len(similarities) < limit or limit >= MOST or self._has_enough(candidates, question.limit):
                break
            limit *= STEP
        return SourceAnswer(candidates=candidates)

    def _nominate(
        self, evidence: Evidence, query: ParsedQuery, question: Question
    ) -> tuple[Sequence[RareWord], Mapping[RareWord, Sequence[int]]]:
        """Return the rare words of the question, and the memories that may hold each."""
        words = find_rare_words(question.text)
        found = nominate(words, query.lookups, evidence, len(evidence.seqs)) if words else {}
        searched = {
            word: self._find_needle(word.text, question) if seqs is None else seqs for word, seqs in found.items()
        }
        return words, searched

    def _find_needle(self, needle: str, question: Question) -> Sequence[int]:
        """Return the memories that hold a text, or nothing if they are too many."""
        found = self._store.list_memories(
            question.owner,
            needle=needle,
            where=question.where,
            now=question.now,
            is_past=question.is_past,
            limit=MAX_READ,
        )
        if len(found) == MAX_READ:
            return ()
        return [memory_seq(each.id) or 0 for each in found if each.kind in question.kinds]

    def _add_parts(self, evidence: Evidence, query: ParsedQuery, question: Question) -> Evidence:
        """Add the memories that hold a single character of the question inside a longer term, which is not indexed."""
        for place, term in enumerate(query.terms):
            if is_part_of_term(term):
                found = self._store.list_memories(question.owner, needle=term, now=question.now, limit=MOST)
                evidence = evidence.with_holders(place, [memory_seq(each.id) or 0 for each in found])
        return evidence

    def _make_candidates(
        self,
        question: Question,
        similarities: Mapping[int, float],
        words: Sequence[RareWord],
        nominated: Mapping[RareWord, Sequence[int]],
        *,
        with_ended: bool = False,
    ) -> Sequence[Candidate]:
        summaries = self._store.find_summaries(question.owner, list({*similarities}.union(*nominated.values())))
        visible = {seq: summary for seq, summary in summaries.items() if _is_recalled(summary, question)}
        if with_ended:
            visible = self._mark_past(summaries, question)
        held = find_held_words(words, nominated, {seq: summary.text for seq, summary in visible.items()})
        return [
            _make_candidate(question.owner, visible[seq], similarities.get(seq, 0.0), held.get(seq, ()))
            for seq in dict.fromkeys((*similarities, *held))
            if seq in visible
        ]

    def _mark_past(self, summaries: Mapping[int, MemorySummary], question: Question) -> dict[int, MemorySummary]:
        """Return the live memories, and the facts that were true until something took their place, marked as such."""
        memories = {seq: summary.whole() for seq, summary in summaries.items()}
        live = {seq for seq, memory in memories.items() if memory.state(question.now) is State.LIVE}
        past = {seq: each for seq, each in memories.items() if each.told is not None and each.ended_as in PAST}
        past = {seq: memory for seq, memory in past.items() if seq not in live and memory.forgotten_at is None}
        followed = [memory_seq(memory.ended_by) or 0 for memory in past.values() if memory.ended_by is not None]
        successors = self._store.find_memories(question.owner, followed) if followed else {}
        marked = {
            seq: summaries[seq]._replace(
                text=mark_ended(memory, successors.get(memory_seq(memory.ended_by or "") or 0))
            )
            for seq, memory in past.items()
        }
        return {seq: summary for seq, summary in summaries.items() if seq in live} | marked

    def _has_enough(self, candidates: Iterable[Candidate], needed: int) -> bool:
        """Return True if at least `needed` candidates are not suspicious, or if none is suspicious."""
        unflagged, is_any_flagged = 0, False
        for each in candidates:
            memory = each.memory
            if memory is not None and is_suspicious(self._judge(memory)):
                is_any_flagged = True
            elif (unflagged := unflagged + 1) == needed:
                return True
        return not is_any_flagged


def _is_recalled(summary: MemorySummary, question: Question) -> bool:
    """Check what the index cannot: it compares times in whole seconds, with a clock that may have stepped back."""
    return summary.since <= question.now if question.is_past else not summary.has_ended


def _make_candidate(owner: Owner, summary: MemorySummary, similarity: float, held: Iterable[HeldWord]) -> Candidate:
    return Candidate(
        source=Source.MEMORY,
        id=memory_id(summary.seq),
        text=summary.text,
        similarity=similarity,
        importance=summary.importance,
        created_at=summary.created_at,
        seq=summary.seq,
        whole=summary.whole,
        agent_id=owner.agent,
        held=tuple(held),
    )
