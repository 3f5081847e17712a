"""Recording what was done, and looking at it."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.memories import given_text
from recollect.cli.run import Command, Run
from recollect.policy.history import COMPLETED


def record(
    run: Run,
    action: Annotated[str, typer.Argument(help="A stable word with a dot, such as order.refund.", show_default=False)],
    message: Annotated[str, typer.Argument(help="What was done; - reads it from standard input.", show_default=False)],
) -> None:
    """Put an event of your own into the audit log, for good; --agent says who did it."""
    run.view.recorded(run.tenant.audit.record(action, given_text(message), agent=_named_agent(run)))


def step(
    run: Run,
    workflow: Annotated[str, typer.Argument(help="Its id, or its name; a new name begins one.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="STEP", help="What was done.", show_default=False)],
    output: Annotated[str, typer.Argument(help="What came out of it; - reads it from standard input.")] = "",
    status: Annotated[str, typer.Option(help="How it ended.")] = COMPLETED,
) -> None:
    """Record a step of a workflow and what came out of it; --agent says who did it."""
    kept = run.tenant.record_step(
        workflow=workflow, step=name, output=given_text(output), status=status, agent=_named_agent(run)
    )
    run.view.steps([kept], next_cursor=None)


def workflows(
    run: Run,
    id: Annotated[str | None, typer.Argument(help="Show the steps of this one.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    after: Annotated[
        str,
        typer.Option(metavar="ID", help="Continue behind this workflow, or this step.", show_default=False),
    ] = "",
) -> None:
    """List the tenant's workflows, or the steps of one."""
    if id is None:
        found = run.tenant.list_workflows(after=after, limit=limit)
        run.view.workflows(found, next_cursor=found[-1].id if len(found) == limit else None)
        return
    if after and not after.isdecimal():
        raise typer.BadParameter("Steps are numbered: give the position of the last one you have seen.")
    steps = run.tenant.list_steps(id, after=int(after or 0), limit=limit)
    run.view.steps(steps, next_cursor=str(steps[-1].position) if len(steps) == limit else None)


def _named_agent(run: Run) -> str | None:
    """The agent that was named on the command line; the settings' default did nothing."""
    named = run.flags["agent"]
    return None if named is None else str(named)


COMMANDS = (
    Command(run=record, example="recollect record order.refund 'Refund of 30 euro approved' --agent billing"),
    Command(run=step, example="recollect step 'Refund run' 'check receipt' 'Receipt found' --agent billing"),
    Command(run=workflows, example="recollect workflows refund-run", lister="workflows"),
)
