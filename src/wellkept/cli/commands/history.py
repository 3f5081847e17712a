"""History: record events and workflow steps, and list workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import click

from wellkept.cli.commands.audit import render_recorded
from wellkept.cli.options import read_text
from wellkept.cli.output import Column, Output, next_page
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, json_record, local_time, one_line, plain_time, safe, shorten
from wellkept.history.rules_history import COMPLETED
from wellkept.model import Json, Workflow, WorkflowStep

STEP_FIELDS = ("workflow_id", "workflow_name", "position", "name", "output", "status", "agent_id", "completed_at")


def record(
    run: Run,
    action: Annotated[str, Argument(help="A stable word with a dot, such as order.refund.")],
    message: Annotated[str, Argument(help="What was done; - reads standard input.")],
) -> None:
    """Add an event to the audit log, for good; --agent says who did it."""
    run.show(render_recorded(run.tenant.audit.record(action, read_text(message), agent=_get_agent(run))))


def step(
    run: Run,
    workflow: Annotated[str, Argument(help="Its id or name; a new name starts a workflow.")],
    name: Annotated[str, Argument(metavar="STEP", help="What was done.")],
    output: Annotated[str, Argument(help="The result; - reads standard input.")] = "",
    status: Annotated[str, Option(help="The outcome.")] = COMPLETED,
) -> None:
    """Record a step of a workflow and its result; --agent says who did it."""
    recorded = run.tenant.record_step(
        workflow=workflow, step=name, output=read_text(output), status=status, agent=_get_agent(run)
    )
    run.show(_render_steps([recorded]))


def workflows(
    run: Run,
    id: Annotated[str | None, Argument(help="Show the steps of this one.")] = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    after: Annotated[str, Option(metavar="ID", help="Continue after this workflow or step.")] = "",
) -> None:
    """List the tenant's workflows, or the steps of one."""
    if id is None:
        found = run.tenant.list_workflows(after=after, limit=limit)
        run.show(_render_workflows(found, next_cursor=found[-1].id if len(found) == limit else None))
        return
    if after and not after.isdecimal():
        raise click.BadParameter("Steps are numbered: give the position of the last one you have seen.")
    steps = run.tenant.list_steps(id, after=int(after or 0), limit=limit)
    run.show(_render_steps(steps, next_cursor=str(steps[-1].position) if len(steps) == limit else None))


def _get_agent(run: Run) -> str | None:
    """Return the agent given on the command line; the default agent of the settings did nothing."""
    agent = run.flags["agent"]
    return None if agent is None else str(agent)


COMMANDS = (
    Command(run=record, example="wellkept record order.refund 'Refund of 30 euro approved' --agent billing"),
    Command(run=step, example="wellkept step 'Refund run' 'check receipt' 'Receipt found' --agent billing"),
    Command(run=workflows, example="wellkept workflows refund-run", listed_by="workflows"),
)


def _render_workflows(workflows: Sequence[Workflow], *, next_cursor: str | None) -> Output:
    return Output(
        json={
            "items": [{name: json_record(each)[name] for name in ("id", "name", "created_at")} for each in workflows],
            "next_cursor": next_cursor,
        },
        lines=((each.id, plain_time(each.created_at), one_line(each.name)) for each in workflows),
        columns=(Column("Workflow", "cyan"), Column("Begun", "dim", wide_only=True), Column("Name")),
        rows=((safe(each.id), local_time(each.created_at), one_line(each.name)) for each in workflows),
        if_empty="No workflows yet.",
        more=next_page("--after", next_cursor),
    )


def _render_steps(steps: Sequence[WorkflowStep], *, next_cursor: str | None = None) -> Output:
    return Output(
        json={"items": [_step_json(each) for each in steps], "next_cursor": next_cursor},
        lines=(
            (each.id, plain_time(each.completed_at), each.status, safe(each.agent_id or EMPTY), _step_text(each))
            for each in steps
        ),
        columns=(
            Column("Step", "cyan"),
            Column("When", "dim", wide_only=True),
            Column("Agent", "cyan", wide_only=True),
            Column("Status"),
            Column("Output"),
        ),
        rows=(
            (
                str(each.position),
                local_time(each.completed_at),
                safe(each.agent_id or ""),
                each.status,
                shorten(_step_text(each)),
            )
            for each in steps
        ),
        if_empty="It has no steps yet.",
        more=next_page("--after", next_cursor),
    )


def _step_json(step: WorkflowStep) -> Json:
    record = json_record(step)
    return {"id": step.id} | {name: record[name] for name in STEP_FIELDS}


def _step_text(step: WorkflowStep) -> str:
    """Return the step's name and output on one line."""
    return f"{one_line(step.name)}: {one_line(step.output)}" if step.output else one_line(step.name)
