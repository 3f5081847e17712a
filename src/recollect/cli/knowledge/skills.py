"""Seeing what agents are taught by files."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.errors import NotFound


def skills(
    run: Run,
    name: Annotated[str | None, typer.Argument(help="Show this one in full.", show_default=False)] = None,
) -> None:
    """List what agents are taught by SKILL.md files; with --agent, what this agent is.

    The files are looked for in the folders of the setting `skills`."""
    found = run.store.skills() if run.flags["agent"] is None else run.memory.skills()
    if name is not None:
        found = [skill for skill in found if skill.name == name]
        if not found:
            raise NotFound("There is no such skill.")
    run.view.skills(found, run.store.skill_problems(), is_whole=name is not None)


COMMANDS = (Command(run=skills, example="RECOLLECT_SKILLS=skills recollect skills", lister="skills"),)
