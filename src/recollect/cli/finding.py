"""Finding memories: by their words, by what they mean, by what they resemble, or for a prompt."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.memories import AsOf, MemoryId, OfKind, WithTag, as_shown, given_text
from recollect.cli.run import Command, Run
from recollect.errors import Invalid
from recollect.model import Kind, Source
from recollect.policy.prompt.relevance import Mode
from recollect.policy.recall.purposes import PURPOSES, checked_purpose

OnlyKinds = Annotated[
    list[Kind] | None,
    typer.Option(metavar="KIND", help=f"Only {', '.join(Kind)}; repeat for more.", show_default=False),
]
FromSource = Annotated[
    list[Source] | None,
    typer.Option(metavar="SOURCE", help=f"Only from {', '.join(Source)}; repeat for more.", show_default=False),
]


def _given_purpose(name: str) -> str:
    try:
        checked_purpose(name)
    except Invalid as error:
        raise typer.BadParameter(str(error)) from None
    return name


ForPurpose = Annotated[
    str | None,
    typer.Option(
        metavar="PURPOSE",
        parser=_given_purpose,
        help=f"What it is for: {', '.join(PURPOSES)}.",
        show_default=False,
        autocompletion=lambda: list(PURPOSES),
    ),
]


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
    kind: OnlyKinds = None,
    source: FromSource = None,
    purpose: ForPurpose = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
    as_of: AsOf = None,
) -> None:
    """Ask a question and see what fits it best, by meaning and by words."""
    hits = run.memory.recall(
        query, limit=limit, kinds=kind or None, sources=source or None, purpose=purpose, as_of=as_of
    )
    run.view.hits(hits, is_explained=explain)


def explain(
    run: Run,
    query: Annotated[str, typer.Argument(help="The question, as it was asked.", show_default=False)],
    id: Annotated[str, typer.Option("--id", help="Of what was recalled, or was not: m-7, a-12 …", show_default=False)],
    limit: Annotated[int, typer.Option(help="How many were asked for.")] = 5,
    kind: OnlyKinds = None,
    source: FromSource = None,
    purpose: ForPurpose = None,
    as_of: AsOf = None,
) -> None:
    """Say why a question finds something, or why it does not."""
    run.view.explained(
        run.memory.explain(
            query, id, limit=limit, kinds=kind or None, sources=source or None, purpose=purpose, as_of=as_of
        )
    )


def similar(run: Run, id: MemoryId) -> None:
    """List what says nearly the same as a memory, most alike first."""
    found = as_shown(run, run.memory.similar(id))
    run.view.memories(found, next_cursor=None, if_none="Nothing else says nearly the same.")


def inject(
    run: Run,
    message: Annotated[str, typer.Argument(help="The user's last message; - reads it from standard input.")],
    mode: Annotated[
        Mode | None, typer.Option(help="How notes are chosen; as the settings say if not given.", show_default=False)
    ] = None,
) -> None:
    """Show the notes that fit a message, as the block that goes into the next prompt."""
    run.view.injected(run.memory.inject(given_text(message), mode=mode))


COMMANDS = (
    Command(run=search, example="recollect search tabs --tag preference"),
    Command(run=recall, example="recollect recall 'how to indent code?' --explain"),
    Command(run=explain, example="recollect explain 'how to indent code?' --id m-1"),
    Command(run=similar, example="recollect similar m-1", lister="list"),
    Command(run=inject, example="recollect inject 'how to indent code?' --mode hybrid"),
)
