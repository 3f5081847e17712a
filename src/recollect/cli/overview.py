"""Seeing what is there, and what was done: agents, settings and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.anchors import anchor as keep_heads
from recollect.cli.run import REFUSED, Command, Run
from recollect.cli.view import AgentShown, SettingShown
from recollect.settings import MASK, SettingRow, Settings, masked, table


def agents(
    run: Run,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    after: Annotated[str, typer.Option(metavar="AGENT", help="Continue behind this one.", show_default=False)] = "",
) -> None:
    """List the tenant's agents and how many memories each has."""
    found = run.tenant.list_agents(after=after, limit=limit)
    counts = run.tenant.count_memories_by_agent([agent.id for agent in found])
    rows = [AgentShown(agent=agent, counts=counts[agent.id]) for agent in found]
    run.view.agents(rows, next_cursor=found[-1].id if len(found) == limit else None)


def settings(run: Run) -> None:
    """Show every setting, its value and where the value comes from. Secrets are masked."""
    current, in_files = run.settings, Settings.load(environment={})
    run.view.settings([_shown(row, current, in_files, run.flags) for row in table()])


def audit(
    run: Run,
    query: Annotated[str, typer.Argument(help="What the message holds; case does not matter.")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that the log is whole, instead of showing it.")
    ] = False,
    anchor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Check every tenant's log (or --tenant's), also against the heads in this file; add the current ones.",
            show_default=False,
        ),
    ] = None,
    anchor_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="Hand the heads to this program's standard input instead.", show_default=False
        ),
    ] = "",
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    before: Annotated[
        int | None, typer.Option(metavar="EVENT", help="Continue behind this one.", show_default=False)
    ] = None,
) -> None:
    """Show what was done in the tenant, newest first."""
    is_anchored = anchor is not None or bool(anchor_command)
    if not verify and not is_anchored:
        found = run.tenant.audit.search(query, before=before, limit=limit)
        run.view.events(found, next_cursor=found[-1].id if len(found) == limit else None)
        return
    if query:
        raise typer.BadParameter("--verify and --anchor look at the whole log; leave the words out.")
    if is_anchored:
        keep_heads(run, anchor, anchor_command)
        return
    report = run.tenant.audit.verify()
    run.view.verified(report)
    if not report.is_intact:
        raise typer.Exit(REFUSED)


COMMANDS = (
    Command(run=agents, example="recollect agents --tenant acme"),
    Command(run=audit, example="recollect audit m-1 --limit 5"),
    Command(run=settings, example="recollect settings --url sqlite:///notes.db"),
)


def _shown(row: SettingRow, current: Settings, in_files: Settings, flags: Mapping[str, object]) -> SettingShown:
    value = getattr(current, row.name)
    shown = current.store_url if row.name == "url" else value  # the empty one says little
    if flags.get(row.name) is not None:
        source = "flag"
    elif value != getattr(in_files, row.name):
        source = "environment"
    else:
        source = "default" if value == getattr(Settings(), row.name) else "file"
    return SettingShown(
        name=row.name,
        value=_without_secrets(shown, row),
        source=source,
        default=row.default,
        environment=row.environment[0],
        meaning=row.meaning,
    )


def _without_secrets(value: str | float | tuple[str, ...], row: SettingRow) -> str | float | list[str]:
    if row.is_secret and value:
        return MASK
    if isinstance(value, str):
        return masked(value)
    return list(value) if isinstance(value, tuple) else value
