"""What was done in the tenant, by whomever."""

from __future__ import annotations

from recollect.model import AuditEvent, Source
from recollect.policy.history import event_id, event_importance
from recollect.ports import AuditStore
from recollect.services.recall.question import PAST_STEP, Candidate, Question, SourceAnswer

CANDIDATES = 10


class Audit:
    """A tenant's audit log, by words. It holds no content, so every agent may look, unless a key limits its caller."""

    name = Source.AUDIT

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        tenant, limit = question.owner.tenant, max(CANDIDATES, question.limit) * depth
        wanted = limit
        while True:
            matches = self._store.search_events(tenant, question.text, limit=limit)
            events = self._store.find_events(tenant, [match.seq for match in matches])
            found = [(match.score, event) for match in matches if (event := events.get(match.seq)) is not None]
            known = [pair for pair in found if _is_known(pair[1], question)]
            if len(known) >= wanted or len(matches) < limit:
                break
            limit *= PAST_STEP
        best = max((score for score, _ in known), default=0.0)
        candidates = [_candidate(event, score / best) for score, event in known[:wanted]]
        return SourceAnswer(candidates=candidates, strength=best)


def _is_known(event: AuditEvent, question: Question) -> bool:
    """Return True unless it happened later, or the caller's list of events would not hold it."""
    is_shown = not question.agents or event.agent_id in question.agents
    return is_shown and (not question.is_past or event.at <= question.now)


def _candidate(event: AuditEvent, similarity: float) -> Candidate:
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
