"""What came out of the tenant's workflows, whoever did the work."""

from __future__ import annotations

from recollect.model import Source, WorkflowStep
from recollect.policy.history import step_importance
from recollect.ports import WorkflowStore
from recollect.services.recall.question import PAST_STEP, Candidate, Question, SourceAnswer

CANDIDATES = 5
SHOWN_CHARS = 2000
"""Of a step's output, what a hit shows; the workflow has all of it."""


class Steps:
    """Workflow steps, by words."""

    name = Source.WORKFLOW

    def __init__(self, store: WorkflowStore) -> None:
        self._store = store

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        tenant, limit = question.owner.tenant, max(CANDIDATES, question.limit) * depth
        wanted = limit
        while True:
            matches = self._store.search_steps(tenant, question.text, limit=limit)
            steps = self._store.find_steps(tenant, [match.seq for match in matches])
            found = [(match.score, step) for match in matches if (step := steps.get(match.seq)) is not None]
            known = [pair for pair in found if _is_known(pair[1], question)]
            if len(known) >= wanted or len(matches) < limit:
                break
            limit *= PAST_STEP
        best = max((score for score, _ in known), default=0.0)
        return SourceAnswer(
            candidates=[_candidate(step, score / best) for score, step in known[:wanted]], strength=best
        )


def _is_known(step: WorkflowStep, question: Question) -> bool:
    """Return True unless it was done later, or by an agent that is not the caller's."""
    is_shown = not question.agents or step.agent_id is None or step.agent_id in question.agents
    return is_shown and (not question.is_past or step.completed_at <= question.now)


def _candidate(step: WorkflowStep, similarity: float) -> Candidate:
    output = step.output if len(step.output) <= SHOWN_CHARS else f"{step.output[:SHOWN_CHARS]}…"
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
