"""History: record events and workflow steps, and list workflows."""

from __future__ import annotations

from typing import Annotated

from wellkept.cli.commands.audit import EVENT_COLUMNS, event_json
from wellkept.cli.options import Limit, read_text
from wellkept.cli.output import Column, Output, list_records, say
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record
from wellkept.history.rules_history import COMPLETED
from wellkept.model import Json, WorkflowStep


def record(
    run: Run,
    action: Annotated[str, Argument(help="A stable word with a dot, such as order.refund.")],
    message: Annotated[str, Argument(help="What was done; - reads standard input.")],
) -> None:
    """Add an event to the audit log, for good; --agent says who did it.

    Example: wellkept data record order.refund 'Refund of 30 euro approved' --agent billing"""
    event = run.tenant.audit.record(action, read_text(message), agent=_get_agent(run))
    done = say(f"Recorded as event {event.id}", event_json(event))
    run.show(Output(json=done.json, lines=list_records(EVENT_COLUMNS, [event]).lines, blocks=done.blocks))


def record_step(
    run: Run,
    workflow: Annotated[str, Argument(help="Its id or name; a new name starts a workflow.")],
    name: Annotated[str, Argument(metavar="STEP", help="What was done.")],
    output: Annotated[str, Argument(help="The result; - reads standard input.")] = "",
    status: Annotated[str, Option(help="The outcome.")] = COMPLETED,
) -> None:
    """Record a step of a workflow and its result; --agent says who did it.

    Example: wellkept admin workflows record 'Refund run' 'check receipt' 'Receipt found' --agent billing"""
    recorded = run.tenant.workflows.record(
        workflow=workflow, step=name, output=read_text(output), status=status, agent=_get_agent(run)
    )
    run.show(list_records(STEP_COLUMNS, [recorded], json=_step_json))


def list_workflows(
    run: Run,
    limit: Limit = 100,
    after: Annotated[str, Option(metavar="ID", help="Continue after this one.")] = "",
) -> None:
    """List the tenant's workflows.

    Example: wellkept admin workflows list"""
    found = run.tenant.workflows.list(after=after, limit=limit)
    page = ("--after", lambda each: each.id)
    run.show(list_records(WORKFLOW_COLUMNS, found, limit=limit, page=page, if_empty="No workflows yet."))


def show(
    run: Run,
    id: Annotated[str, Argument(help="The workflow's id.")],
    limit: Limit = 100,
    after: Annotated[int, Option(metavar="STEP", help="Continue after the step with this number.")] = 0,
) -> None:
    """List the steps of a workflow.

    Example: wellkept admin workflows show refund-run"""
    steps = run.tenant.workflows.steps(id, after=after, limit=limit)
    page = ("--after", lambda each: str(each.position))
    run.show(
        list_records(STEP_COLUMNS, steps, json=_step_json, limit=limit, page=page, if_empty="It has no steps yet.")
    )


def _get_agent(run: Run) -> str | None:
    """Return the agent given on the command line; the default agent of the settings did nothing."""
    agent = run.flags["agent"]
    return None if agent is None else str(agent)


WORKFLOW_COLUMNS = (
    Column("Workflow", lambda each: each.id, "cyan"),
    Column("Begun", lambda each: each.created_at, "dim", only="wide"),
    Column("", lambda each: each.created_at, only="pipe"),
    Column("Name", lambda each: each.name),
)
STEP_COLUMNS = (
    Column("", lambda each: each.id, only="pipe"),
    Column("Step", lambda each: each.position, "cyan", only="terminal"),
    Column("When", lambda each: each.completed_at, "dim", only="wide"),
    Column("", lambda each: each.completed_at, only="pipe"),
    Column("Agent", lambda each: each.agent_id, "cyan", only="wide"),
    Column("Status", lambda each: each.status),
    Column("", lambda each: each.agent_id, only="pipe"),
    Column("Output", lambda each: f"{each.name}: {each.output}" if each.output else each.name),
)


def _step_json(step: WorkflowStep) -> Json:
    return {"id": step.id} | json_record(step)
