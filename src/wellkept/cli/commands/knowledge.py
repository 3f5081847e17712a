"""Knowledge that agents share: documents and skills."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.commands.recall import render_hits
from wellkept.cli.completion import complete_document
from wellkept.cli.options import Metadata, Where, decode_input, parse_metadata
from wellkept.cli.output import (
    NARROW,
    Block,
    Cell,
    Column,
    Grid,
    Indented,
    Line,
    Output,
    OutputNote,
    Styled,
    confirm,
    next_page,
)
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Command, Run
from wellkept.cli.text import EMPTY, json_record, one_line, plain_time, safe
from wellkept.errors import Invalid, NotFound
from wellkept.knowledge.ingest import Change, DocumentFields, IngestFailure, IngestReport
from wellkept.model import Chunk, Document, Json, Recalled, Skill

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

    Unchanged documents are skipped; changed ones replace their old version."""
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
    read = partial(run.tenant.ingest, include=include or (), exclude=exclude or (), prune=prune, **fields)
    for path in paths:
        with run.progress("Ingesting") as bar:
            try:
                if path == STANDARD_INPUT:
                    done.append(_ingest_input(run, fields))
                else:
                    done.append(read(path, progress=bar.report))
            except Invalid as error:
                done.append(IngestReport(failures=(IngestFailure(source=str(path), reason=str(error)),)))
    ingested = _merge(done)
    run.embed_stored()
    run.show(_render_ingested(ingested, is_narrow=run.printer.width < NARROW))
    if ingested.failures:
        raise click.exceptions.Exit(REFUSED)


def _ingest_input(run: Run, fields: DocumentFields) -> IngestReport:
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    return run.tenant.ingest_text(decode_input(sys.stdin.buffer.read()), **fields)


def _merge(parts: Sequence[IngestReport]) -> IngestReport:
    return IngestReport(
        documents=tuple(each for part in parts for each in part.documents),
        failures=tuple(each for part in parts for each in part.failures),
        removed=tuple(each for part in parts for each in part.removed),
    )


def list_(
    run: Run,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    after: Annotated[str, Option(metavar="ID", help="Continue after this one.")] = "",
    category: Annotated[str | None, Option(help="Only documents of this category.")] = None,
    where: Where = None,
) -> None:
    """List the tenant's documents, by id."""
    found = run.tenant.list_documents(category=category or "", where=where, after=after, limit=limit)
    run.show(_render_documents(found, next_cursor=found[-1].id if len(found) == limit else None))


def show(run: Run, id: DocumentId) -> None:
    """Show a document and its passages."""
    run.show(_render_document(run.tenant.get_document(id), run.tenant.list_passages(id)))


def edit(
    run: Run,
    id: DocumentId,
    title: Title = None,
    category: Category = None,
    publish: Annotated[bool | None, Option("--publish/--hide", help="Let searches find it, or not.")] = None,
    metadata: Metadata = None,
) -> None:
    """Change a document's title, category or metadata, publish it or hide it."""
    fields = parse_metadata(metadata)
    if title is None and category is None and publish is None and fields is None:
        raise click.BadParameter("Say what to change: --title, --category, --metadata, --publish or --hide.")
    edited = run.tenant.update_document(id, title=title, category=category, is_published=publish, metadata=fields)
    run.show(_render_documents([edited]))


def delete(run: Run, id: DocumentId) -> None:
    """Delete a document and its passages for good."""
    run.tenant.delete_document(id)
    run.show(confirm("Forgotten", id))


def search(
    run: Run,
    query: Annotated[str, Argument(help="A question in your own words.")],
    category: Annotated[list[str] | None, Option(help="Only documents of this category; repeat for more.")] = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 5,
    min_relevance: Annotated[float | None, Option(help="Least relevance of a passage, 0 to 1.")] = None,
    where: Where = None,
) -> None:
    """Find the passages that answer a question best; with --agent, those the agent may see."""
    memory = run.tenant if run.flags["agent"] is None else run.memory
    hits = memory.search_knowledge(
        query, categories=category or (), where=where, limit=limit, min_relevance=min_relevance
    )
    run.show(render_hits(Recalled(hits), is_explained=False))


def skills(run: Run, name: Annotated[str | None, Argument(help="Show this one in full.")] = None) -> None:
    """List the skills from SKILL.md files; with --agent, those of this agent.

    The setting `skills` names the folders with these files."""
    found = run.store.skills() if run.flags["agent"] is None else run.memory.skills()
    problems = run.store.skill_problems
    if name is None:
        run.show(_render_skills(found, problems()))
        return
    named = [skill for skill in found if skill.name == name]
    if not named:
        raise NotFound("There is no such skill.")
    run.show(_render_whole_skills(named, problems()))


COMMANDS = (
    Command(run=ingest, example="wellkept ingest handbook --category policy"),
    Command(run=skills, example="WELLKEPT_SKILLS=skills wellkept skills", listed_by="skills"),
)
KB_COMMANDS = (
    Command(run=list_, alias="list", example="wellkept kb list"),
    Command(run=show, example="wellkept kb show d-0f343b0931126a20", listed_by="kb list"),
    Command(run=search, example="wellkept kb search 'refund policy' --category policy"),
    Command(run=edit, example="wellkept kb edit d-0f343b0931126a20 --hide", listed_by="kb list"),
    Command(run=delete, example="wellkept kb delete d-0f343b0931126a20", listed_by="kb list"),
)


INGESTED_COLUMNS = (
    Column("Change"),
    Column("Id", "cyan", wide_only=True),
    Column("Passages", wide_only=True),
    Column("Document"),
)


def _render_ingested(ingested: IngestReport, *, is_narrow: bool) -> Output:
    failures = [one_line(_failure_line(each)) for each in ingested.failures]
    removed = [
        one_line(f"{each.document.source or each.document.title}: {secret.place}: removed a secret ({secret.rule})")
        for each in ingested.documents
        for secret in each.removed_secrets
    ]
    return Output(
        json={
            "items": [
                _document_json(each.document)
                | {
                    "change": each.change.value,
                    "passages": each.passages,
                    "removed_secrets": [asdict(secret) for secret in each.removed_secrets],
                }
                for each in ingested.documents
            ],
            "failures": [asdict(each) for each in ingested.failures],
            "removed": list(ingested.removed),
        },
        lines=[*_ingested_lines(ingested), *map(OutputNote, removed + failures)],
        # Failures alone need no table.
        columns=INGESTED_COLUMNS if ingested.documents or ingested.removed or not failures else (),
        rows=_ingested_rows(ingested, is_narrow=is_narrow),
        if_empty="There is nothing here that can be read.",
        blocks=[*(Styled(line, "yellow") for line in removed), *(Styled(line, "red") for line in failures)],
    )


def _ingested_lines(ingested: IngestReport) -> Iterable[Line]:
    for each in ingested.documents:
        document = each.document
        count = f"{each.passages} passage{'' if each.passages == 1 else 's'}"
        yield each.change.value, document.id, count, one_line(document.source or document.title)
    for id in ingested.removed:
        yield "removed", id


def _ingested_rows(ingested: IngestReport, *, is_narrow: bool) -> Iterable[Sequence[Cell]]:
    for each in ingested.documents:
        document = each.document
        change = Styled(each.change.value, "dim" if each.change is Change.UNCHANGED else "green")
        yield change, document.id, f"{each.passages:,}", one_line(document.source or document.title)
    for id in ingested.removed:
        # Narrow tables have no column for ids.
        yield Styled("removed", "yellow"), id, "", Styled(id, "cyan") if is_narrow else ""


def _failure_line(failure: IngestFailure) -> str:
    return failure.reason if failure.source in failure.reason else f"{failure.source}: {failure.reason}"


def _render_documents(documents: Sequence[Document], *, next_cursor: str | None = None) -> Output:
    return Output(
        json={"items": [_document_json(each) for each in documents], "next_cursor": next_cursor},
        lines=((each.id, _state(each), one_line(each.category) or EMPTY, one_line(each.title)) for each in documents),
        columns=(
            Column("Id", "cyan", whole=True),
            Column("State", wide_only=True),
            Column("Category", wide_only=True),
            Column("Title"),
        ),
        rows=((each.id, _state(each), one_line(each.category), _title_cell(each)) for each in documents),
        if_empty="There are no documents yet; add some with: wellkept ingest PATH",
        more=next_page("--after", next_cursor, "There are more"),
    )


def _title_cell(document: Document) -> Styled:
    source = ((f"  {one_line(document.source)}", "dim"),) if document.source else ()
    return Styled(one_line(document.title), spans=source)


def _render_document(document: Document, passages: Sequence[Chunk]) -> Output:
    about = {name: one_line(value) for name, value in _about(document).items()}
    blocks: list[Block] = [Grid([(Styled(name, "dim"), value) for name, value in about.items()])]
    for each in passages:
        blocks += [Styled(f" {each.position}", "cyan"), Indented(safe(each.text), (0, 2, 1, 4))]
    return Output(
        json=_document_json(document)
        | {"passages": [{"position": each.position, "text": each.text} for each in passages]},
        lines=[
            *(f"{name}: {value}" for name, value in about.items()),
            *(f"\n[{each.position}]\n{safe(each.text)}" for each in passages),
        ],
        blocks=blocks,
    )


def _document_json(document: Document) -> Json:
    return {name: value for name, value in json_record(document).items() if name != "tenant"}


def _state(document: Document) -> str:
    return "published" if document.is_published else "hidden"


def _about(document: Document) -> dict[str, str]:
    """Return the fields of a document besides its text, by name, without the empty ones."""
    about = {
        "id": document.id,
        "title": document.title,
        "category": document.category,
        "source": document.source,
        "state": _state(document),
        "created_at": plain_time(document.created_at),
        "updated_at": plain_time(document.updated_at),
        "flag": document.flag or "",
        "metadata": json.dumps(document.metadata, ensure_ascii=False) if document.metadata else "",
    }
    return {name: value for name, value in about.items() if value}


def _render_skills(skills: Sequence[Skill], problems: Sequence[str]) -> Output:
    return Output(
        json=_skills_json(skills, problems),
        lines=[
            *((safe(each.name), safe(",".join(each.agents) or EMPTY), one_line(each.description)) for each in skills),
            *(OutputNote(one_line(each)) for each in problems),
        ],
        columns=(Column("Skill", "cyan"), Column("For"), Column("What it is for")),
        rows=(
            (safe(each.name), safe(", ".join(each.agents) or "everybody"), one_line(each.description))
            for each in skills
        ),
        if_empty="No skills; name folders of SKILL.md files in the setting skills.",
        blocks=[Styled(one_line(each), "red") for each in problems],
    )


def _render_whole_skills(skills: Sequence[Skill], problems: Sequence[str]) -> Output:
    return Output(
        json=_skills_json(skills, problems),
        lines=[*(safe(each.body) for each in skills), *(OutputNote(one_line(each)) for each in problems)],
        blocks=[*(Indented(safe(each.body)) for each in skills), *(Styled(one_line(each), "red") for each in problems)],
    )


def _skills_json(skills: Sequence[Skill], problems: Sequence[str]) -> Json:
    return {"items": [json_record(each) for each in skills], "next_cursor": None, "problems": list(problems)}
