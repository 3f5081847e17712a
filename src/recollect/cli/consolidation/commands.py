"""Finding memories that one could stand for, and deciding."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.errors import Invalid
from recollect.model import ProposalState


def consolidate(run: Run) -> None:
    """Look for memories that one could stand for, and propose it.

    A model is asked if one is configured; without one, rules find what is certain."""
    run.view.proposals(run.memory.consolidate(), if_none="Nothing to consolidate.")


def proposals(
    run: Run,
    apply: Annotated[str | None, typer.Option(metavar="ID", help="Do as proposed.", show_default=False)] = None,
    reject: Annotated[str | None, typer.Option(metavar="ID", help="Leave it as it is.", show_default=False)] = None,
    undo: Annotated[
        str | None, typer.Option(metavar="ID", help="Take back what was applied.", show_default=False)
    ] = None,
    state: Annotated[str, typer.Option(help="open, applied, rejected, undone or all.")] = ProposalState.OPEN.value,
) -> None:
    """List what consolidation proposes, or decide."""
    chosen = {"apply": apply, "reject": reject, "undo": undo}
    given = {verb: id for verb, id in chosen.items() if id is not None}
    if len(given) > 1:
        raise Invalid("Decide one proposal at a time: --apply, --reject or --undo.")
    for verb, id in given.items():
        run.view.proposal_decided(getattr(run.memory, f"{verb}_proposal")(id))
    if not given:
        run.view.proposals(run.memory.proposals(state=state), if_none="No proposals.")


COMMANDS = (
    Command(run=consolidate, example="recollect consolidate --agent atlas"),
    Command(run=proposals, example="recollect proposals --agent atlas --apply p-1", lister="proposals"),
)
