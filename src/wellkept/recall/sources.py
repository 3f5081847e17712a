"""Sources of a recall: memories of an agent, documents, audit log and workflow steps of a tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from wellkept.facts.rules_profile import PAST, asks_past, mark_ended
from wellkept.history.rules_history import event_id, event_importance, history_terms, is_bookkeeping, step_importance
from wellkept.knowledge.search import Passage, PassageSearch
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import is_part_of_term
from wellkept.memory.rules_trust import Judge, find_instruction, is_suspicious
from wellkept.model import AuditEvent, HeldWord, Match, Owner, Source, State, WorkflowStep
from wellkept.model.stored import MemorySummary
from wellkept.recall.rules_features import Evidence
from wellkept.recall.rules_matching import find_best, rate_words
from wellkept.recall.rules_question import ParsedQuery
from wellkept.recall.rules_ranking import Candidate, Question, RecallSource
from wellkept.recall.rules_rare_words import MAX_READ, RareWord, find_held_words, find_rare_words, nominate

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

LONG_AGO = datetime(1970, 1, 2, tzinfo=UTC)

MEMORIES = 20
"""Minimum number of memories to rank by recency and importance as well."""

EVENTS, STEPS, PASSAGES = 10, 5, 10
"""Minimum numbers of candidates from the other sources."""

GROWTH = 4
MOST_MEMORIES, MOST_PASSAGES = 2000, 200
"""Limits of a search that reads on, because text that reads like instructions ranks last.

The number read grows by the factor `GROWTH` until enough others are found or it has reached the maximum.
"""

PAST_GROWTH = 8
"""Factor by which a search of events grows while too few of its results are visible, by their time or agent."""

MAX_OUTPUT_CHARS = 2000
"""Characters of a step's output in a hit. The workflow has all of it."""

PASSAGE_IMPORTANCE = 0.5
"""Importance of every passage: the middle of the range, because documents have no rating."""

R = TypeVar("R", AuditEvent, WorkflowStep)


class Sources:
    """Sources of a recall."""

    def __init__(self, store: SqlStore, judge: Judge) -> None:
        self._store, self._judge, self._passages = store, judge, PassageSearch(store)
        self.by_name: Mapping[Source, RecallSource] = {
            Source.MEMORY: self.find_memories,
            Source.AUDIT: self.find_events,
            Source.WORKFLOW: self.find_steps,
            Source.KNOWLEDGE: self.find_passages,
        }

    def find_memories(self, question: Question, depth: int) -> Sequence[Candidate]:
        """Search the agent's memories by words, meaning, conversation, speaker and date."""
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
        limit = max(MEMORIES, question.limit) * depth
        while True:
            similarities = find_best(evidence, query, limit=limit)
            candidates = self._make_candidates(question, similarities, words, nominated, with_ended=with_ended)
            if len(similarities) < limit or limit >= MOST_MEMORIES or self._has_enough(candidates, question.limit):
                return candidates
            limit *= GROWTH

    def find_passages(self, question: Question, depth: int) -> Sequence[Candidate]:
        """Search the passages of published documents in the categories that the agent may see."""
        limit = max(PASSAGES, question.limit) * depth
        while True:
            found = self._passages.for_agent(question.owner, question.text, question.vector, limit=limit)
            unflagged = (each for each in found if find_instruction(each.chunk.text) is None)
            has_enough = len(list(islice(unflagged, question.limit))) == question.limit
            if len(found) < limit or limit >= MOST_PASSAGES or has_enough:
                break
            limit *= GROWTH
        # A document edited since is left out: its earlier text is not kept.
        return [
            _make_passage_candidate(each)
            for each in found
            if not question.is_past or each.document.updated_at <= question.now
        ]

    def find_events(self, question: Question, depth: int) -> Sequence[Candidate]:
        """Search the audit log, which holds no content, so events of all agents that the caller's key may see."""
        tenant = question.owner.tenant
        return _search_history(
            question,
            max(EVENTS, question.limit) * depth,
            lambda limit: self._store.search_events(tenant, question.text, limit=limit),
            lambda seqs: self._store.find_events(tenant, seqs),
            _make_event_candidate,
        )

    def find_steps(self, question: Question, depth: int) -> Sequence[Candidate]:
        """Search the steps of workflows, by all agents that the caller's key may see."""
        tenant = question.owner.tenant
        return _search_history(
            question,
            max(STEPS, question.limit) * depth,
            lambda limit: self._store.search_steps(tenant, question.text, limit=limit),
            lambda seqs: self._store.find_steps(tenant, seqs),
            _make_step_candidate,
        )

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
                found = self._store.list_memories(question.owner, needle=term, now=question.now, limit=MOST_MEMORIES)
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
            _make_memory_candidate(question.owner, visible[seq], similarities.get(seq, 0.0), held.get(seq, ()))
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


def _make_memory_candidate(
    owner: Owner, summary: MemorySummary, similarity: float, held: Iterable[HeldWord]
) -> Candidate:
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


def _search_history(
    question: Question,
    needed: int,
    search: Callable[[int], Sequence[Match]],
    fetch: Callable[[Sequence[int]], Mapping[int, R]],
    to_candidate: Callable[[R, float], Candidate],
) -> Sequence[Candidate]:
    """Search deeper until `needed` visible records are found or there are no more."""
    limit, words = needed, len(set(history_terms(question.text)))
    while True:
        matches = search(limit)
        records = fetch([match.seq for match in matches])
        found = (
            to_candidate(records[each.seq], rate_words(each.score, words)) for each in matches if each.seq in records
        )
        visible = [each for each in found if _is_visible(each, question)]
        if len(visible) >= needed or len(matches) < limit:
            return _mark_holders(visible[:needed], find_rare_words(question.text))
        limit *= PAST_GROWTH


def _mark_holders(candidates: Sequence[Candidate], words: Sequence[RareWord]) -> Sequence[Candidate]:
    """Return the candidates with the rare words that they hold.

    Without meaning, what holds a rare word is among the best, so no others need to be looked for.
    """
    if not words:
        return candidates
    places = range(len(candidates))
    certain = [each for each in words if not each.least]
    held = find_held_words(
        certain,
        dict.fromkeys(chain(certain, *(each.parts for each in certain)), places),
        {place: candidates[place].text for place in places},
    )
    return [each._replace(held=tuple(held.get(place, ()))) for place, each in enumerate(candidates)]


def _is_visible(candidate: Candidate, question: Question) -> bool:
    """Return False if a record is later than the question's time, outside the agents of the caller's key, or our own.

    Bookkeeping is left out unless it is asked for: a model has no use for "Messages 1 and 2 were logged".
    """
    is_event = candidate.source is Source.AUDIT
    if is_event and not question.with_bookkeeping and is_bookkeeping(candidate.action):
        return False
    is_anybodys = candidate.agent_id is None and not is_event
    is_allowed = not question.agents or is_anybodys or candidate.agent_id in question.agents
    return is_allowed and (not question.is_past or candidate.created_at <= question.now)


def _make_event_candidate(event: AuditEvent, similarity: float) -> Candidate:
    return Candidate(
        source=Source.AUDIT,
        id=event_id(event.id),
        text=event.message,
        similarity=similarity,
        importance=event_importance(event),
        created_at=event.at,
        agent_id=event.agent_id,
        action=event.action,
    )


def _make_step_candidate(step: WorkflowStep, similarity: float) -> Candidate:
    output = step.output if len(step.output) <= MAX_OUTPUT_CHARS else f"{step.output[:MAX_OUTPUT_CHARS]}…"
    return Candidate(
        source=Source.WORKFLOW,
        id=step.id,
        text=f"{step.workflow_name}, {step.name} ({step.status}): {output}",
        similarity=similarity,
        importance=step_importance(step),
        created_at=step.completed_at,
        said=step.output or f"{step.workflow_name} {step.name} {step.status}",
        agent_id=step.agent_id,
        action=step.status,
    )


def _make_passage_candidate(passage: Passage) -> Candidate:
    return Candidate(
        source=Source.KNOWLEDGE,
        id=passage.id,
        text=passage.chunk.text,
        similarity=passage.similarity,
        importance=PASSAGE_IMPORTANCE,
        created_at=passage.document.updated_at,
        document=passage.document,
        held=passage.held,
    )
