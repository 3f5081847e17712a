"""Knowledge that agents share: documents and skills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import click

from wellkept.cli import output as out
from wellkept.cli.commands.recall import render_hits
from wellkept.cli.options import STANDARD_INPUT, Metadata, complete_document, decode_input, read_file
from wellkept.cli.run import REFUSED, Run
from wellkept.errors import Invalid, NotFound
from wellkept.knowledge.ingest import DocumentFields, IngestFailure, IngestReport
from wellkept.model import Document, Recalled

DocumentId = Annotated[str, complete_document]


def ingest(
    run: Run,
    paths: list[Path],
    title: str | None = None,
    category: str | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    prune: bool = False,
    draft: bool = False,
    metadata: Metadata = None,
    secrets: Annotated[Literal["redact", "reject"] | None, click.Choice(["redact", "reject"])] = None,
) -> None:
    """Ingest documents: Markdown, text, HTML and PDF, as files or folders with their subfolders.

    Unchanged documents are skipped; changed ones replace their old version.

    paths PATH...: Files or folders; - reads a text from standard input.
    --title: The title; for one file only.
    --category: The category.
    --include PATTERN: In folders, only files like this; repeat for more.
    --exclude PATTERN: In folders, no files like this; repeat for more.
    --prune: Remove documents whose file is no longer in the folder.
    --draft: Ingest it without publishing it.
    --secrets: Remove what seems to be a secret (default), or refuse the document.

    Example: wellkept knowledge ingest handbook --category policy"""
    if title is not None and (len(paths) > 1 or paths[0].is_dir()):
        raise click.BadParameter("--title is for one file.")
    done: list[IngestReport] = []
    fields: DocumentFields = {
        "title": title,
        "category": category,
        "is_published": False if draft else None,
        "metadata": metadata,
        "secrets": secrets,
    }
    read = partial(run.tenant.knowledge.ingest, include=include or (), exclude=exclude or (), prune=prune, **fields)
    for path in paths:
        with run.progress("Ingesting") as bar:
            try:
                if str(path) == STANDARD_INPUT:
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
    run: Run, limit: int = 100, after: str = "", category: str | None = None, where: str | None = None
) -> None:
    """List the tenant's documents, by id.

    --after ID: Continue after this one.
    --category: Only documents of this category.

    Example: wellkept knowledge list --category policy"""
    found = run.tenant.knowledge.list(category=category or "", where=where, after=after, limit=limit)
    page = ("--after", lambda each: each.id)
    none = "There are no documents yet; add some with: wellkept knowledge ingest PATH"
    run.show(out.list_records(DOCUMENT_COLUMNS, found, limit=limit, page=page, if_empty=none))


def show(run: Run, id: DocumentId) -> None:
    """Show a document and its passages.

    id ID: The document's id.

    Example: wellkept knowledge show d-0f343b0931126a20"""
    document, passages = run.tenant.knowledge.get(id), run.tenant.knowledge.passages(id)
    names = ("id", "title", "category", "source", "created_at", "updated_at", "flag", "metadata")
    blocks: list[out.Block] = []
    for each in passages:
        blocks += [out.Piped(f"\n[{each.position}]\n{each.text}"), out.Styled(f" {each.position}", "cyan")]
        blocks.append(out.Indented(each.text, (0, 2, 1, 4)))
    values = {name: getattr(document, name) for name in names} | {"state": _state(document)}
    found = [{"position": each.position, "text": each.text} for each in passages]
    run.show(out.show_fields(values, out.json_record(document) | {"passages": found}, blocks=blocks))


def edit(
    run: Run,
    id: DocumentId,
    title: str | None = None,
    category: str | None = None,
    publish: bool | None = None,
    metadata: Metadata = None,
) -> None:
    """Change a document's title, category or metadata, publish it or hide it.

    id ID: The document's id.
    --title: The title.
    --category: The category.
    --publish/--hide: Let searches find it, or not.

    Example: wellkept knowledge edit d-0f343b0931126a20 --hide"""
    if title is None and category is None and publish is None and metadata is None:
        raise click.BadParameter("Say what to change: --title, --category, --metadata, --publish or --hide.")
    edited = run.tenant.knowledge.update(id, title=title, category=category, is_published=publish, metadata=metadata)
    run.show(out.list_records(DOCUMENT_COLUMNS, [edited]))


def delete(run: Run, id: DocumentId) -> None:
    """Delete a document and its passages for good.

    id ID: The document's id.

    Example: wellkept knowledge delete d-0f343b0931126a20"""
    run.tenant.knowledge.delete(id)
    run.show(out.confirm("Deleted", id))


def search(
    run: Run,
    query: str,
    category: list[str] | None = None,
    limit: int = 5,
    min_relevance: float | None = None,
    where: str | None = None,
) -> None:
    """Find the passages that answer a question best; with --agent, those the agent may see.

    query: A question in your own words.
    --category: Only documents of this category; repeat for more.

    Example: wellkept knowledge search 'how long may I return it?' --category policy"""
    memory = run.tenant if run.flags["agent"] is None else run.memory
    hits = memory.knowledge.search(
        query, categories=category or (), where=where, limit=limit, min_relevance=min_relevance
    )
    none = "No passage fits. Ask in other words; wellkept knowledge list shows the documents."
    run.show(render_hits(Recalled(hits), is_explained=False, if_empty=none))


def skills(run: Run, name: str | None = None) -> None:
    """List the skills from SKILL.md files; with --agent, those of this agent.

    The setting `skills` names the folders with these files.

    name: Show this one in full.

    Example: WELLKEPT_SKILLS=skills wellkept knowledge skills"""
    found = run.store.skills() if run.flags["agent"] is None else run.memory.knowledge.skills()
    problems = [out.one_line(each) for each in run.store.skill_problems()]
    if name is not None:
        found = [skill for skill in found if skill.name == name]
        if not found:
            raise NotFound("There is no such skill.")
    document = {"items": [out.json_record(each) for each in found], "next_cursor": None, "problems": problems}
    if name is None:
        none = "No skills; name folders of SKILL.md files in the setting skills."
        run.show(
            out.list_records(SKILL_COLUMNS, found, document=document, if_empty=none, notes=map(out.Remark, problems))
        )
        return
    bodies = [block for each in found for block in (out.Piped(each.body), out.Indented(each.body))]
    run.show(out.Output(document, [*bodies, *(out.Remark(each, "red") for each in problems)]))


def _state(document: Document) -> str:
    return "published" if document.is_published else "hidden"


DOCUMENT_COLUMNS = (
    out.Column("Id", lambda each: each.id, "cyan", is_whole=True),
    out.Column("State", _state, is_wide=True),
    out.Column("Category", lambda each: each.category, is_wide=True),
    out.Column(
        "Title",
        lambda each: out.Styled(each.title, spans=((f"  {out.one_line(each.source)}", "dim"),) if each.source else ()),
    ),
)
SKILL_COLUMNS = (
    out.Column("Skill", lambda each: each.name, "cyan"),
    out.Column("For", lambda each: each.agents),
    out.Column("What it is for", lambda each: each.description),
)
INGESTED_COLUMNS = (
    out.Column(
        "Change", lambda row: out.Styled(row[0], {"unchanged": "dim", "removed": "yellow"}.get(row[0], "green"))
    ),
    out.Column("Id", lambda row: row[1], "cyan"),
    out.Column("Passages", lambda row: row[2], only="terminal", is_wide=True),
    out.Column("", lambda row: None if row[2] is None else out.count(row[2], "passage"), only="pipe"),
    out.Column("Document", lambda row: row[3]),
)


def _render_ingested(ingested: IngestReport) -> out.Output:
    rows: list[tuple[object, ...]] = [
        (each.change.value, each.document.id, each.passages, each.document.source or each.document.title)
        for each in ingested.documents
    ]
    rows += [("removed", id, None, None) for id in ingested.removed]
    notes = [
        out.one_line(f"{each.document.source or each.document.title}: {secret.place}: removed a secret ({secret.rule})")
        for each in ingested.documents
        for secret in each.removed_secrets
    ]
    notes += [out.one_line(_failure_line(each)) for each in ingested.failures]
    documents = [
        out.json_record(each.document)
        | {
            "change": each.change.value,
            "passages": each.passages,
            "removed_secrets": out.json_value(each.removed_secrets),
        }
        for each in ingested.documents
    ]
    document = {"items": documents, "failures": out.json_value(ingested.failures), "removed": [*ingested.removed]}
    if notes and not rows:
        # Failures alone need no table.
        return out.Output(document, map(out.Remark, notes))
    none = "There is nothing here that can be read."
    return out.list_records(INGESTED_COLUMNS, rows, document=document, if_empty=none, notes=map(out.Remark, notes))


def _failure_line(failure: IngestFailure) -> str:
    return failure.reason if failure.source in failure.reason else f"{failure.source}: {failure.reason}"
