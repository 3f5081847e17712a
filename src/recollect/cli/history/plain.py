"""What was done, for pipes and files."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.view import one_line, plain_time, safe
from recollect.model import Appearance, AuditEvent, Explanation, Workflow, WorkflowStep

EMPTY = "-"


class PlainHistory:
    """The part of `View` that is about what was done, as lines."""

    def events(self, events: Sequence[AuditEvent], *, next_cursor: int | None) -> None:
        for each in events:
            self.recorded(each)

    def recorded(self, event: AuditEvent) -> None:
        agent = safe(event.agent_id or EMPTY)
        told = [str(event.id), plain_time(event.at), safe(event.action), agent, message_of(event)]
        print("\t".join([*told, safe(event.actor) or EMPTY]))

    def explained(self, explanation: Explanation) -> None:
        print("\t".join([safe(explanation.id), explanation.outcome.value, one_line(explanation.sentence)]))
        if explanation.words:
            print(f"words: {', '.join(map(one_line, explanation.words))}")
        for each in explanation.prompts:
            print("\t".join([each.call_id, plain_time(each.at), safe(each.session_id), in_prompt(each)]))

    def workflows(self, workflows: Sequence[Workflow], *, next_cursor: str | None) -> None:
        for each in workflows:
            print("\t".join([each.id, plain_time(each.created_at), one_line(each.name)]))

    def steps(self, steps: Sequence[WorkflowStep], *, next_cursor: str | None) -> None:
        for each in steps:
            who = safe(each.agent_id or EMPTY)
            print("\t".join([each.id, plain_time(each.completed_at), each.status, who, step_text(each)]))


def message_of(event: AuditEvent) -> str:
    """What an event says, with a mark if somebody has damaged it."""
    return f"[damaged] {one_line(event.message)}" if event.is_damaged else one_line(event.message)


def in_prompt(appearance: Appearance) -> str:
    """What became of something in one prompt."""
    why = appearance.left_out
    return f"not shown in {appearance.block}: {safe(why)}" if why else f"shown in {appearance.block}"


def step_text(step: WorkflowStep) -> str:
    """A step's name and what came out of it, on one line."""
    return f"{one_line(step.name)}: {one_line(step.output)}" if step.output else one_line(step.name)
