"""Looking into the big texts an agent has stored, and storing one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.completion import complete_detail
from recollect.cli.run import Command, Run
from recollect.errors import Invalid

STANDARD_INPUT = "-"

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="The detail's key, such as npm-install-x7k2m9qp.",
        show_default=False,
        autocompletion=complete_detail,
    ),
]
Session = Annotated[str | None, typer.Option(help="The conversation it belongs to.", show_default=False)]


def store(
    run: Run,
    file: Annotated[str, typer.Argument(help="A file of text; - reads standard input.", show_default=False)],
    description: Annotated[str, typer.Option(help="One line for the reference.", show_default=False)] = "",
    type: Annotated[str, typer.Option(help="Such as command_output or api_response.")] = "file_content",
    session: Session = None,
) -> None:
    """Keep a big text and print the reference that stands for it in prompts."""
    if file == STANDARD_INPUT and sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    is_piped = file == STANDARD_INPUT
    stored = run.memory.store_detail(
        sys.stdin.buffer if is_piped else Path(file),
        description=description or ("" if is_piped else Path(file).name),
        type=type,
        session_id=session,
        metadata={} if is_piped else {"source": file},
    )
    run.view.detail_stored(stored)


def list_(
    run: Run,
    query: Annotated[
        str, typer.Argument(help="Words; those first that have most of them. Without any: the newest.")
    ] = "",
    session: Session = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """List the big texts an agent has stored."""
    run.view.detail_list(run.memory.search_details(query, session_id=session, limit=limit))


def show(
    run: Run,
    key: Key,
    offset: Annotated[int, typer.Option(help="From this character on.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Characters at most.", show_default=False)] = None,
    lines: Annotated[str | None, typer.Option(help="Such as 120-180, 120 or 120-.", show_default=False)] = None,
    head: Annotated[int | None, typer.Option(help="So many first lines.", show_default=False)] = None,
    tail: Annotated[int | None, typer.Option(help="So many last lines.", show_default=False)] = None,
    grep: Annotated[str | None, typer.Option(help="Lines that hold this, or match /this/.", show_default=False)] = None,
    context: Annotated[int, typer.Option(help="Lines around each match.")] = 2,
    json_path: Annotated[
        str | None, typer.Option(help="Values of a JSON text, such as $.items[0].", show_default=False)
    ] = None,
) -> None:
    """Show a part of a big text; what remains of it is said on standard error."""
    page = run.memory.read_detail(
        key,
        offset=offset,
        limit=limit,
        lines=lines,
        head=head,
        tail=tail,
        grep=grep,
        context=context,
        json_path=json_path,
    )
    run.view.detail_part(page)


def hide(
    run: Run,
    key: Key,
    undo: Annotated[bool, typer.Option("--undo", help="Show it again.")] = False,
) -> None:
    """Keep a big text, but let nobody find or read it."""
    run.view.detail_changed(run.memory.hide_detail(key, is_hidden=not undo).key, "Shown again" if undo else "Hidden")


def delete(run: Run, key: Key) -> None:
    """Delete a big text for good."""
    run.memory.delete_detail(key)
    run.view.detail_changed(key, "Deleted")


COMMANDS = (
    Command(run=store, example="recollect details store build.log --description 'the nightly build'"),
    Command(run=list_, example="recollect details list build", called="list"),
    Command(run=show, example="recollect details show build-log-x7k2m9qp --grep error", lister="details list"),
    Command(run=hide, example="recollect details hide build-log-x7k2m9qp", lister="details list"),
    Command(run=delete, example="recollect details delete build-log-x7k2m9qp", lister="details list"),
)
