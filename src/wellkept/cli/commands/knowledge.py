"""Knowledge that agents share: documents and skills."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.commands.recall import render_hits
from wellkept.cli.completion import complete_document
from wellkept.cli.options import Limit, Metadata, MinRelevance, Where, decode_input, parse_metadata, read_file
from wellkept.cli.output import Block, Column, Indented, Output, Styled, confirm, list_records, remarks, show_fields
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Run
from wellkept.cli.text import count, json_record, json_value, one_line
from wellkept.errors import Invalid, NotFound
from wellkept.knowledge.ingest import DocumentFields, IngestFailure, IngestReport
from wellkept.model import Document, Recalled

STANDARD_INPUT = Path("-")

DocumentId = Annotated[str, Argument(metavar="ID", help="The document's id.", complete=complete_document)]


class DocumentSecrets(Enum):
    """Handling of what seems to be a secret in a document."""

    REDACT = "redact"
    REJECT = "reject"


Title = Annotated[str | None, Option(help="The title.")]
Category = Annotated[str | None, Option(help="The category.")]


def ingest(
    run: Run,
    paths: Annotated[
        list[Path], Argument(metavar="PATH...", help="Files or folders; - reads a text from standard input.")
    ],
    title: Annotated[str | None, Option(help="The title; for one file only.")] = None,
    category: Category = None,
    include: Annotated[
        list[str] | None, Option(metavar="PATTERN", help="In folders, only files like this; repeat for more.")
    ] = None,
    exclude: Annotated[
        list[str] | None, Option(metavar="PATTERN", help="In folders, no files like this; repeat for more.")
    ] = None,
    prune: Annotated[bool, Option("--prune", help="Remove documents whose file is no longer in the folder.")] = False,
    draft: Annotated[bool, Option("--draft", help="Ingest it without publishing it.")] = False,
    metadata: Metadata = None,
    secrets: Annotated[
        DocumentSecrets | None, Option(help="Remove what seems to be a secret (default), or refuse the document.")
    ] = None,
) -> None:
    """Ingest documents: Markdown, text, HTML and PDF, as files or folders with their subfolders.

    Unchanged documents are skipped; changed ones replace their old version.

    Example: wellkept knowledge ingest handbook --category policy"""
    if title is not None and (len(paths) > 1 or paths[0].is_dir()):
        raise click.BadParameter("--title is for one file.")
    done: list[IngestReport] = []
    fields: DocumentFields = {
        "title": title,
        "category": category,
        "is_published": False if draft else None,
        "metadata": parse_metadata(metadata),
        "secrets": None if secrets is None else secrets.value,
    }
    read = partial(run.tenant.knowledge.ingest, include=include or (), exclude=exclude or (), prune=prune, **fields)
    for path in paths:
        with run.progress("Ingesting") as bar:
            try:
                if path == STANDARD_INPUT:
                    done.append(run.tenant.knowledge.ingest_text(decode_input(read_file(path)), **fields))
                else:
                    done.append(read(path, progress=bar.report))
            except Invalid as error:
                done.append(IngestReport(failures=(IngestFailure(source=str(path), reason=str(error)),)))
    ingested = _merge(done)
    run.embed_stored()
    run.show(_render_ingested(ingested))
    if ingested.failures:
        raise click.exceptions.Exit(REFUSED)


def _merge(parts: Sequence[IngestReport]) -> IngestReport:
    return IngestReport(
        documents=tuple(each for part in parts for each in part.documents),
        failures=tuple(each for part in parts for each in part.failures),
        removed=tuple(each for part in parts for each in part.removed),
    )


def list_documents(
    run: Run,
    limit: Limit = 100,
    after: Annotated[str, Option(metavar="ID", help="Continue after this one.")] = "",
    category: Annotated[str | None, Option(help="Only documents of this category.")] = None,
    where: Where = None,
) -> None:
    """List the tenant's documents, by id.

    Example: wellkept knowledge list --category policy"""
    found = run.tenant.knowledge.list(category=category or "", where=where, after=after, limit=limit)
    page = ("--after", lambda each: each.id)
    none = "There are no documents yet; add some with: wellkept knowledge ingest PATH"
    run.show(list_records(DOCUMENT_COLUMNS, found, limit=limit, page=page, if_empty=none))


def show(run: Run, id: DocumentId) -> None:
    """Show a document and its passages.

    Example: wellkept knowledge show d-0f343b0931126a20"""
    document, passages = run.tenant.knowledge.get(id), run.tenant.knowledge.passages(id)
    names = ("id", "title", "category", "source", "created_at", "updated_at", "flag", "metadata")
    blocks: list[Block] = []
    for each in passages:
        blocks += [Styled(f" {each.position}", "cyan"), Indented(each.text, (0, 2, 1, 4))]
    found = [{"position": each.position, "text": each.text} for each in passages]
    run.show(
        show_fields(
            {name: getattr(document, name) for name in names} | {"state": _state(document)},
            json_record(document) | {"passages": found},
            lines=[f"\n[{each.position}]\n{each.text}" for each in passages],
            blocks=blocks,
        )
    )


def edit(
    run: Run,
    id: DocumentId,
    title: Title = None,
    category: Category = None,
    publish: Annotated[bool | None, Option("--publish/--hide", help="Let searches find it, or not.")] = None,
    metadata: Metadata = None,
) -> None:
    """Change a document's title, category or metadata, publish it or hide it.

    Example: wellkept knowledge edit d-0f343b0931126a20 --hide"""
    fields = parse_metadata(metadata)
    if title is None and category is None and publish is None and fields is None:
        raise click.BadParameter("Say what to change: --title, --category, --metadata, --publish or --hide.")
    edited = run.tenant.knowledge.update(id, title=title, category=category, is_published=publish, metadata=fields)
    run.show(list_records(DOCUMENT_COLUMNS, [edited]))


def delete(run: Run, id: DocumentId) -> None:
    """Delete a document and its passages for good.

    Example: wellkept knowledge delete d-0f343b0931126a20"""
    run.tenant.knowledge.delete(id)
    run.show(confirm("Deleted", id))


def search(
    run: Run,
    query: Annotated[str, Argument(help="A question in your own words.")],
    category: Annotated[list[str] | None, Option(help="Only documents of this category; repeat for more.")] = None,
    limit: Limit = 5,
    min_relevance: MinRelevance = None,
    where: Where = None,
) -> None:
    """Find the passages that answer a question best; with --agent, those the agent may see.

    Example: wellkept knowledge search 'how long may I return it?' --category policy"""
    memory = run.tenant if run.flags["agent"] is None else run.memory
    hits = memory.knowledge.search(
        query, categories=category or (), where=where, limit=limit, min_relevance=min_relevance
    )
    none = "No passage fits. Ask in other words; wellkept knowledge list shows the documents."
    run.show(render_hits(Recalled(hits), is_explained=False, if_empty=none))


def skills(run: Run, name: Annotated[str | None, Argument(help="Show this one in full.")] = None) -> None:
    """List the skills from SKILL.md files; with --agent, those of this agent.

    The setting `skills` names the folders with these files.

    Example: WELLKEPT_SKILLS=skills wellkept knowledge skills"""
    found = run.store.skills() if run.flags["agent"] is None else run.memory.knowledge.skills()
    problems = [one_line(each) for each in run.store.skill_problems()]
    if name is None:
        none = "No skills; name folders of SKILL.md files in the setting skills."
        run.show(list_records(SKILL_COLUMNS, found, more={"problems": problems}, if_empty=none, notes=problems))
        return
    named = [skill for skill in found if skill.name == name]
    if not named:
        raise NotFound("There is no such skill.")
    lines, blocks = remarks(problems, "red")
    run.show(
        Output(
            json={"items": [json_record(each) for each in named], "next_cursor": None, "problems": problems},
            lines=[*(each.body for each in named), *lines],
            blocks=[*(Indented(each.body) for each in named), *blocks],
        )
    )


def _state(document: Document) -> str:
    return "published" if document.is_published else "hidden"


DOCUMENT_COLUMNS = (
    Column("Id", lambda each: each.id, "cyan", is_whole=True),
    Column("State", _state, only="wide"),
    Column("", _state, only="pipe"),
    Column("Category", lambda each: each.category, only="wide"),
    Column("", lambda each: each.category, only="pipe"),
    Column(
        "Title",
        lambda each: Styled(each.title, spans=((f"  {one_line(each.source)}", "dim"),) if each.source else ()),
    ),
)
SKILL_COLUMNS = (
    Column("Skill", lambda each: each.name, "cyan"),
    Column("For", lambda each: each.agents),
    Column("What it is for", lambda each: each.description),
)
INGESTED_COLUMNS = (
    Column("Change", lambda row: Styled(row[0], {"unchanged": "dim", "removed": "yellow"}.get(row[0], "green"))),
    Column("Id", lambda row: row[1], "cyan"),
    Column("Passages", lambda row: row[2], only="wide"),
    Column("", lambda row: None if row[2] is None else count(row[2], "passage"), only="pipe"),
    Column("Document", lambda row: row[3]),
)


def _render_ingested(ingested: IngestReport) -> Output:
    rows: list[tuple[object, ...]] = [
        (each.change.value, each.document.id, each.passages, each.document.source or each.document.title)
        for each in ingested.documents
    ]
    rows += [("removed", id, None, None) for id in ingested.removed]
    notes = [
        one_line(f"{each.document.source or each.document.title}: {secret.place}: removed a secret ({secret.rule})")
        for each in ingested.documents
        for secret in each.removed_secrets
    ]
    notes += [one_line(_failure_line(each)) for each in ingested.failures]
    listed = list_records(
        INGESTED_COLUMNS,
        rows,
        if_empty="" if notes else "There is nothing here that can be read.",
        notes=notes,
    )
    documents = [
        json_record(each.document)
        | {"change": each.change.value, "passages": each.passages, "removed_secrets": json_value(each.removed_secrets)}
        for each in ingested.documents
    ]
    json = {"items": documents, "failures": json_value(ingested.failures), "removed": [*ingested.removed]}
    # Failures alone need no table.
    return Output(
        json=json, lines=listed.lines, blocks=[each for each in listed.blocks if rows or isinstance(each, Styled)]
    )


def _failure_line(failure: IngestFailure) -> str:
    return failure.reason if failure.source in failure.reason else f"{failure.source}: {failure.reason}"
