"""Finding memories: by their words, or by what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.memories import OfKind, WithTag, as_shown
from recollect.cli.run import Command, Run
from recollect.model import Kind


def search(
    run: Run,
    query: Annotated[str, typer.Argument(help="What the text holds, exactly like this; case does not matter.")] = "",
    tag: WithTag = "",
    kind: OfKind = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """Find memories that hold exactly these words, newest first."""
    found = run.memory.search(query, tag=tag, kind=kind, limit=limit)
    run.view.memories(as_shown(run, found), next_cursor=None, if_none="Nothing holds that; recall finds by meaning.")


def recall(
    run: Run,
    query: Annotated[str, typer.Argument(help="A question, in your own words.", show_default=False)],
    limit: Annotated[int, typer.Option(help="How many at most.")] = 5,
    kind: Annotated[
        list[Kind] | None, typer.Option(metavar="KIND", help="Only this kind; repeat for more.", show_default=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
) -> None:
    """Ask a question and see what fits it best, by meaning and by words."""
    run.view.hits(run.memory.recall(query, limit=limit, kinds=kind or None), is_explained=explain)


COMMANDS = (
    Command(run=search, example="recollect search tabs --tag preference"),
    Command(run=recall, example="recollect recall 'how to indent code?' --explain"),
)
