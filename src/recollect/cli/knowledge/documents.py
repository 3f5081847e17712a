"""Documents: taking them in, listing, asking, changing and deleting them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.completion import complete_document
from recollect.cli.progress import Bar
from recollect.cli.run import REFUSED, Command, Run
from recollect.errors import Invalid
from recollect.model import Recalled
from recollect.services.knowledge.report import Ingested, IngestFailure

STANDARD_INPUT = Path("-")

DocumentId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The document's id.", show_default=False, autocompletion=complete_document),
]
Title = Annotated[str | None, typer.Option(help="What it is called.", show_default=False)]
Category = Annotated[str | None, typer.Option(help="What to sort it under.", show_default=False)]


def ingest(
    run: Run,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Files or folders; - reads a text from standard input.", show_default=False
        ),
    ],
    title: Annotated[str | None, typer.Option(help="What it is called; for one file only.", show_default=False)] = None,
    category: Category = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Of folders, only such files; repeat for more.", show_default=False),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Of folders, no such files; repeat for more.", show_default=False),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose file is gone from the folder.")
    ] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Take it in without publishing it.")] = False,
) -> None:
    """Take in documents: Markdown, text, HTML and PDF, single files or folders with all below them.

    What is there already is left alone; what has changed takes the place of its old self."""
    if title is not None and (len(paths) > 1 or paths[0].is_dir()):
        raise typer.BadParameter("--title is for one file.")
    done: list[Ingested] = []
    for path in paths:
        with Bar(run.view, "Ingesting") as bar:
            try:
                if path == STANDARD_INPUT:
                    done.append(_from_input(run, title, category, draft))
                else:
                    done.append(
                        run.tenant.ingest(
                            path,
                            title=title,
                            category=category,
                            is_published=False if draft else None,
                            include=include or (),
                            exclude=exclude or (),
                            prune=prune,
                            progress=bar.report,
                        )
                    )
            except Invalid as error:
                done.append(Ingested(failures=(IngestFailure(source=str(path), reason=str(error)),)))
    ingested = _together(done)
    run.view.ingested(ingested)
    if ingested.failures:
        raise typer.Exit(REFUSED)


def _from_input(run: Run, title: str | None, category: str | None, draft: bool) -> Ingested:
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"Standard input is not UTF-8 text (at byte {error.start}).") from error
    return run.tenant.ingest_text(text, title=title, category=category, is_published=False if draft else None)


def _together(parts: Sequence[Ingested]) -> Ingested:
    return Ingested(
        documents=tuple(each for part in parts for each in part.documents),
        failures=tuple(each for part in parts for each in part.failures),
        removed=tuple(each for part in parts for each in part.removed),
    )


def list_(
    run: Run,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    after: Annotated[str, typer.Option(metavar="ID", help="Continue behind this one.", show_default=False)] = "",
    category: Annotated[str | None, typer.Option(help="Only documents of this category.", show_default=False)] = None,
) -> None:
    """List the tenant's documents, by id."""
    found = run.tenant.list_documents(category=category or "", after=after, limit=limit)
    run.view.documents(found, next_cursor=found[-1].id if len(found) == limit else None)


def show(run: Run, id: DocumentId) -> None:
    """Show a document and the passages it was cut into."""
    run.view.document(run.tenant.get_document(id), run.tenant.list_passages(id))


def edit(
    run: Run,
    id: DocumentId,
    title: Title = None,
    category: Category = None,
    publish: Annotated[
        bool | None, typer.Option("--publish/--hide", help="Whether it is found.", show_default=False)
    ] = None,
) -> None:
    """Change what a document is called or sorted under, publish it or hide it."""
    if title is None and category is None and publish is None:
        raise typer.BadParameter("Say what to change: --title, --category, --publish or --hide.")
    edited = run.tenant.update_document(id, title=title, category=category, is_published=publish)
    run.view.documents([edited], next_cursor=None)


def delete(run: Run, id: DocumentId) -> None:
    """Delete a document and its passages for good."""
    run.tenant.delete_document(id)
    run.view.forgotten(id)


def search(
    run: Run,
    query: Annotated[str, typer.Argument(help="A question, in your own words.", show_default=False)],
    category: Annotated[
        list[str] | None, typer.Option(help="Only documents of this category; repeat for more.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 5,
) -> None:
    """Find the passages that fit a question best; with --agent, in what this agent may see."""
    asked = run.tenant if run.flags["agent"] is None else run.memory
    hits = asked.search_knowledge(query, categories=category or (), limit=limit)
    run.view.hits(Recalled(hits), is_explained=False)


COMMANDS = (Command(run=ingest, example="recollect ingest handbook --category policy"),)
KB_COMMANDS = (
    Command(run=list_, called="list", example="recollect kb list"),
    Command(run=show, example="recollect kb show d-0f343b0931126a20", lister="kb list"),
    Command(run=search, example="recollect kb search 'refund policy' --category policy"),
    Command(run=edit, example="recollect kb edit d-0f343b0931126a20 --hide", lister="kb list"),
    Command(run=delete, example="recollect kb delete d-0f343b0931126a20", lister="kb list"),
)
