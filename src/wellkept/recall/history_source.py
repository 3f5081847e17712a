"""Recall sources for the audit log and workflow steps. Both are searched by words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from wellkept.history.rules_history import event_id, event_importance, history_terms, is_bookkeeping, step_importance
from wellkept.model import AuditEvent, Match, Source, WorkflowStep
from wellkept.recall.question import PAST_STEP, Candidate, Question, SourceAnswer
from wellkept.recall.rules_calibration import rate_words
from wellkept.recall.rules_rare_words import RareWord, find_held_words, find_rare_words

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

EVENT_CANDIDATES = 10
STEP_CANDIDATES = 5

MAX_OUTPUT_CHARS = 2000
"""Characters of a step's output in a hit. The workflow has all of it."""

R = TypeVar("R", AuditEvent, WorkflowStep)


class AuditSource:
    """Audit log of a tenant. It holds no content, so an agent finds events of all agents, if the caller's key may."""

    name = Source.AUDIT

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        tenant = question.owner.tenant
        return _search(
            question,
            max(EVENT_CANDIDATES, question.limit) * depth,
            lambda limit: self._store.search_events(tenant, question.text, limit=limit),
            lambda seqs: self._store.find_events(tenant, seqs),
            lambda event: _is_event_visible(event, question),
            _make_event_candidate,
        )


class StepSource:
    """Workflow steps of a tenant, by all agents that the caller's key may see."""

    name = Source.WORKFLOW

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        tenant = question.owner.tenant
        return _search(
            question,
            max(STEP_CANDIDATES, question.limit) * depth,
            lambda limit: self._store.search_steps(tenant, question.text, limit=limit),
            lambda seqs: self._store.find_steps(tenant, seqs),
            lambda step: _is_step_visible(step, question),
            _make_step_candidate,
        )


def _search(
    question: Question,
    needed: int,
    search: Callable[[int], Sequence[Match]],
    fetch: Callable[[Sequence[int]], Mapping[int, R]],
    is_visible: Callable[[R], bool],
    to_candidate: Callable[[R, float], Candidate],
) -> SourceAnswer:
    """Search deeper until `needed` visible records are found or there are no more."""
    limit = needed
    while True:
        matches = search(limit)
        records = fetch([match.seq for match in matches])
        found = [(match.score, record) for match in matches if (record := records.get(match.seq)) is not None]
        visible = [pair for pair in found if is_visible(pair[1])]
        if len(visible) >= needed or len(matches) < limit:
            break
        limit *= PAST_STEP
    number = len(set(history_terms(question.text)))
    candidates = [to_candidate(record, rate_words(score, number)) for score, record in visible[:needed]]
    return SourceAnswer(candidates=_mark_holders(candidates, find_rare_words(question.text)))


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


def _is_event_visible(event: AuditEvent, question: Question) -> bool:
    """Return False if the event is later than the question's time, outside the agents of the caller's key, or our own.

    Bookkeeping is left out unless it is asked for: a model has no use for "Messages 1 and 2 were logged".
    """
    if not question.with_bookkeeping and is_bookkeeping(event.action):
        return False
    is_allowed = not question.agents or event.agent_id in question.agents
    return is_allowed and (not question.is_past or event.at <= question.now)


def _is_step_visible(step: WorkflowStep, question: Question) -> bool:
    """Return False if the step is later than the question's time or by an agent outside the caller's key."""
    is_allowed = not question.agents or step.agent_id is None or step.agent_id in question.agents
    return is_allowed and (not question.is_past or step.completed_at <= question.now)


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
