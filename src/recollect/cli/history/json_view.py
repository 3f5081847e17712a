"""What was done, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import AuditEvent, Explanation, Hit, Json, Workflow, WorkflowStep

EVENT = ("id", "at", "action", "agent_id", "actor", "message", "meta", "hash", "is_damaged")
STEP = ("workflow_id", "workflow_name", "position", "name", "output", "status", "agent_id", "completed_at")


class JsonHistory:
    """The part of `View` that is about what was done, as JSON."""

    def events(self, events: Sequence[AuditEvent], *, next_cursor: int | None) -> None:
        write_json({"items": [_event(each) for each in events], "next_cursor": next_cursor})

    def recorded(self, event: AuditEvent) -> None:
        write_json(_event(event))

    def explained(self, explanation: Explanation) -> None:
        hit, rival = explanation.hit, explanation.rival
        write_json(
            {
                "id": explanation.id,
                "outcome": explanation.outcome.value,
                "sentence": explanation.sentence,
                "rank": explanation.rank,
                "hit": None if hit is None else _hit(hit),
                "words": list(explanation.words),
                "rival": None if rival is None else {"id": rival.id, "score": rival.score},
                "missing": [asdict(each) for each in explanation.unanswered],
                "prompts": [json_record(each) for each in explanation.prompts],
            }
        )

    def workflows(self, workflows: Sequence[Workflow], *, next_cursor: str | None) -> None:
        items = [{name: json_record(each)[name] for name in ("id", "name", "created_at")} for each in workflows]
        write_json({"items": items, "next_cursor": next_cursor})

    def steps(self, steps: Sequence[WorkflowStep], *, next_cursor: str | None) -> None:
        write_json({"items": [_step(each) for each in steps], "next_cursor": next_cursor})


def _hit(hit: Hit) -> Json:
    weighed = {"score": hit.score, "parts": dict(hit.parts), "weights": dict(hit.weights)}
    return {"source": hit.source.value, "id": hit.id, "text": hit.text, **weighed, "explain": hit.explain}


def _event(event: AuditEvent) -> Json:
    record = json_record(event) | {"actor": event.actor}
    return {name: record[name] for name in EVENT}


def _step(step: WorkflowStep) -> Json:
    record = json_record(step)
    return {"id": step.id} | {name: record[name] for name in STEP}
