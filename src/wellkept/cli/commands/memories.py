"""Memories: remember, list, show, edit, forget, and review those that wait for approval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Unpack, cast

import click

from wellkept.cli.batch import store_batch
from wellkept.cli.completion import complete_memory
from wellkept.cli.options import (
    AsOf,
    FilterOptions,
    MemoryId,
    Metadata,
    OfKind,
    Secrets,
    name_options,
    parse_metadata,
    read_text,
)
from wellkept.cli.output import (
    Cell,
    Column,
    Grid,
    Indented,
    Output,
    OutputNote,
    Styled,
    Table,
    confirm,
    next_page,
    tick,
)
from wellkept.cli.parameters import Argument, Option, offer_words
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, HINT_CHARS, json_record, local_time, one_line, plain_time, safe, shorten
from wellkept.memory.similar import find_lookalikes
from wellkept.model import Json, Kind, Memory, MemoryVersion, Scope, State, StateName

ANY_STATE = "all"
COLOURS = {Kind.CORE: "magenta", Kind.JOURNAL: "blue", Kind.NOTE: "green", Kind.EPISODE: "yellow", Kind.ITEM: "cyan"}

Tags = Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag; repeat for more (at most 5).")]
Importance = Annotated[float | None, Option(help="From 0 to 1.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory and its state at the time that was asked for."""

    memory: Memory
    state: State


def remember(
    run: Run,
    text: Annotated[str | None, Argument(help="The text to remember; - reads standard input.")] = None,
    kind: Annotated[Kind, Option(help="The kind of memory, which sets its rules.")] = Kind.NOTE,
    tag: Tags = None,
    scope: Annotated[Scope | None, Option(help="Who or what it is about.")] = None,
    importance: Importance = None,
    session: Annotated[str | None, Option(help="The conversation it comes from.")] = None,
    category: Annotated[str | None, Option(help="The category of an episode, which sets its lifetime.")] = None,
    supersedes: Annotated[str | None, Option(metavar="ID", help="The memory this one corrects.")] = None,
    metadata: Metadata = None,
    secrets: Secrets = None,
    batch: Annotated[
        Path | None, Option(metavar="FILE", help="Store every line of this JSON Lines file, or none.")
    ] = None,
) -> None:
    """Store one short text, or a file of them. It is on disk when the command ends."""
    if (text is None) == (batch is None):
        raise click.BadParameter("Give either a text or --batch FILE.")
    run.flags |= {"secrets": secrets}
    given: dict[str, Any] = {
        "kind": kind,
        "tags": tag or (),
        "scope": scope,
        "importance": importance,
        "session_id": session,
        "category": category,
        "supersedes": supersedes,
        "metadata": parse_metadata(metadata),
    }
    if batch is not None:
        stored = store_batch(run.memory.remember_many, batch, given)
        run.embed_stored()
        rows = read_states(run, stored)
        run.show(render_memories(rows, if_empty="The file is empty."))
    elif text is not None:
        memory = run.memory.remember(read_text(text), **given)
        run.show(render_remembered(read_states(run, [memory])[0], find_lookalikes(run.memory.similar, memory)))


def list_(
    run: Run,
    kind: OfKind = None,
    state: Annotated[
        str | None,
        Option(
            help=f"{', '.join(State)} or {ANY_STATE}; by default live, unless --where names a state.",
            complete=offer_words([*State, ANY_STATE]),
        ),
    ] = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    before: Annotated[str | None, Option(metavar="ID", help="Continue after this one.")] = None,
    as_of: AsOf = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """List memories, newest first."""
    chosen = None if state is None else _check_state(state)
    found = run.memory.list(kind=kind, state=chosen, as_of=as_of, limit=limit, before=before, **name_options(filters))
    next_cursor = found[-1].id if len(found) == limit else None
    rows = read_states(run, found, at=as_of)
    none = f"Agent {run.memory.owner.agent} has none of these; wellkept agents list shows who has memories."
    run.show(render_memories(rows, if_empty=none, next_cursor=next_cursor))


def show(run: Run, id: MemoryId) -> None:
    """Show a memory in full, with its earlier versions."""
    memory = run.memory.get(id)
    run.show(_render_memory(read_states(run, [memory])[0], run.memory.history(id)))


def edit(
    run: Run,
    id: MemoryId,
    text: Annotated[str | None, Option(help="The new text; - reads standard input.")] = None,
    tag: Annotated[
        list[str] | None, Option("--tag", metavar="TAG", help="A tag that replaces the old ones; repeat for more.")
    ] = None,
    no_tags: Annotated[bool, Option("--no-tags", help="Remove all tags.")] = False,
    importance: Importance = None,
    metadata: Metadata = None,
    version: Annotated[int | None, Option(help="Only if this is still its version.")] = None,
    secrets: Secrets = None,
) -> None:
    """Change a memory. Its earlier versions stay in its history."""
    run.flags |= {"secrets": secrets}
    if tag and no_tags:
        raise click.BadParameter("--tag and --no-tags exclude each other.")
    if text is None and importance is None and not tag and not no_tags and not metadata:
        raise click.BadParameter("Say what to change: --text, --tag, --no-tags, --importance or --metadata.")
    tags = () if no_tags else tag or None
    new_text = None if text is None else read_text(text)
    fields = parse_metadata(metadata)
    memory = run.memory.update(id, text=new_text, tags=tags, importance=importance, metadata=fields, version=version)
    run.show(_render_changed("Edited", read_states(run, [memory])[0]))


def forget(
    run: Run,
    id: Annotated[str | None, Argument(metavar="ID", help="The memory's id.", complete=complete_memory)] = None,
    about: Annotated[str | None, Option(metavar="TEXT", help="What to forget, such as 'my old address'.")] = None,
) -> None:
    """Delete a memory and its history for good, or hide what a few words mean.

    What is forgotten by --about can be restored for 30 days. If it is not clear which memories are meant, nothing is
    forgotten, and they are listed."""
    if (id is None) == (about is None):
        raise click.BadParameter("Give either the id of a memory or --about with what to forget.")
    if id is not None:
        run.memory.forget(id)
        run.show(confirm("Forgotten", id))
        return
    done = run.memory.forget(about=about)
    run.show(_render_forgotten(read_states(run, done.forgotten), read_states(run, done.candidates)))


def profile(
    run: Run,
    subject: Annotated[str | None, Option(help="Whom or what: user, a name, or a relation such as sister.")] = None,
) -> None:
    """Show what is true now of the user, and of those the user spoke about."""
    rows = read_states(run, run.memory.profile(subject=subject).facts)
    run.show(render_memories(rows, if_empty="Nothing is known yet. Facts come out of what users say in conversations."))


def review(run: Run) -> None:
    """List memories that wait for approval, and those marked as suspicious."""
    run.show(_render_review(read_states(run, run.memory.review())))


def approve(
    run: Run,
    id: Annotated[str | None, Argument(metavar="ID", help="The memory's id.", complete=complete_memory)] = None,
    workspace: Annotated[bool, Option("--workspace", help="All notes that came with the workspace's file.")] = False,
) -> None:
    """Approve a memory from the review, or the notes that came with a workspace."""
    if workspace == (id is not None):
        raise click.BadParameter("Give the id of one memory, or approve the whole file with --workspace.")
    if id is None:
        run.show(_render_approved_workspace(run.memory.approve_workspace()))
    else:
        run.show(_render_changed("Approved", read_states(run, [run.memory.approve(id)])[0]))


COMMANDS = (
    Command(run=remember, example="wellkept remember 'Prefers tabs over spaces' --tag preference"),
    Command(run=list_, alias="list", example="wellkept list --kind journal --limit 10"),
    Command(run=show, example="wellkept show m-1", listed_by="list"),
    Command(run=edit, example="wellkept edit m-1 --text 'Prefers two spaces'", listed_by="list"),
    Command(run=forget, example="wellkept forget m-1", listed_by="list"),
    Command(run=profile, example="wellkept profile --subject sister"),
    Command(run=review, example="wellkept review --agent atlas"),
    Command(run=approve, example="wellkept approve m-1", listed_by="review"),
)


def read_states(run: Run, memories: Sequence[Memory], *, at: datetime | None = None) -> list[MemoryRow]:
    """Add to each memory its state now, or `at` a time."""
    moment = run.store.now() if at is None else at
    return [MemoryRow(memory=memory, state=memory.state(moment, is_past=at is not None)) for memory in memories]


def _check_state(state: str) -> StateName:
    if state not in (*State, ANY_STATE):
        raise click.BadParameter(f"{state!r} is not one of {', '.join(State)}, {ANY_STATE}.", param_hint="--state")
    return cast(StateName, state)


def render_remembered(row: MemoryRow, similar: Sequence[Memory]) -> Output:
    """Render a new memory, and those it may duplicate, so that they can be merged."""
    return Output(
        json=_json(row) | {"similar": [{"id": each.id, "text": each.text} for each in similar]},
        lines=[_line(row), *(OutputNote(_similar_hint(each)) for each in similar)],
        blocks=[_done("Remembered", row.memory), *(Styled(_similar_hint(each), "yellow") for each in similar)],
    )


def _render_changed(verb: str, row: MemoryRow) -> Output:
    return Output(json=_json(row), lines=[_line(row)], blocks=[_done(verb, row.memory)])


def render_memories(rows: Sequence[MemoryRow], *, if_empty: str, next_cursor: str | None = None) -> Output:
    """Render a list of memories."""
    return Output(
        json={"items": [_json(row) for row in rows], "next_cursor": next_cursor},
        lines=(_line(row) for row in rows),
        columns=(
            Column("Id", "cyan", whole=True),
            Column("Kind", whole=True),
            Column("Written", "dim", whole=True, wide_only=True),
            Column("Memory"),
        ),
        rows=(
            (safe(row.memory.id), kind_cell(row.memory.kind), local_time(row.memory.created_at), _text_cell(row))
            for row in rows
        ),
        if_empty=if_empty,
        more=next_page("--before", next_cursor),
    )


def _render_memory(row: MemoryRow, history: Sequence[MemoryVersion]) -> Output:
    memory, details = row.memory, _details(row)
    styles = {"kind": COLOURS[memory.kind], "id": "cyan"}
    versions = Table(
        (Column("Version", whole=True), Column("Until", whole=True), Column("Said")),
        ((str(each.version), local_time(each.replaced_at), safe(each.text)) for each in history),
    )
    return Output(
        json=_json(row) | {"history": [json_record(each) for each in history]},
        lines=[
            *(f"{name}: {value}" for name, value in details.items()),
            "text: " + safe(memory.text).replace("\n", "\n  "),
            *(
                f"version {each.version}, until {plain_time(each.replaced_at)}: {one_line(each.text)}"
                for each in history
            ),
        ],
        blocks=[
            Indented(Styled(safe(memory.text), "bold")),
            Grid(
                [(Styled(name, "dim"), Styled(value, styles.get(name, ""))) for name, value in details.items()],
                margin=(0, 2),
            ),
            *([versions] if history else []),
        ],
    )


def _render_forgotten(forgotten: Sequence[MemoryRow], candidates: Sequence[MemoryRow]) -> Output:
    rows = forgotten or candidates
    if forgotten:
        says = "Forgotten; bring one back with: wellkept restore ID"
    else:
        says = "Nothing was forgotten. Which of these do you mean? Name it with: wellkept forget ID"
    return Output(
        json={"forgotten": [_json(row) for row in forgotten], "candidates": [_json(row) for row in candidates]},
        lines=[OutputNote(says), *(_line(row) for row in rows)] if rows else [],
        columns=(Column("Id", "cyan", whole=True), Column("Memory")),
        rows=([row.memory.id, _text_cell(row)] for row in rows),
        if_empty="Nothing is known about that, so nothing was forgotten.",
        blocks=[Styled(f" {says}", "dim")] if rows else [],
    )


def _render_review(rows: Sequence[MemoryRow]) -> Output:
    return Output(
        json={"items": [_json(row) for row in rows], "next_cursor": None},
        lines=(_line(row, row.memory.flag or EMPTY) for row in rows),
        columns=(Column("Id", "cyan", whole=True), Column("Kind", whole=True), Column("Memory")),
        rows=_review_rows(rows),
        if_empty="Nothing waits for approval.",
        blocks=[Styled(" Let one into use with: wellkept approve ID", "dim")] if rows else [],
    )


def _review_rows(rows: Iterable[MemoryRow]) -> Iterable[Sequence[Cell]]:
    for row in rows:
        text = _text_cell(row)
        flag = (f"\n{one_line(row.memory.flag or '')}", "yellow")
        yield safe(row.memory.id), kind_cell(row.memory.kind), Styled(text.text, spans=(*text.spans, flag))


def _render_approved_workspace(count: int) -> Output:
    line = f"Approved: {count}"
    return Output(json={"approved": count}, lines=[line], blocks=[(tick(True), line)])


def kind_cell(kind: Kind) -> Styled:
    """Return the kind in its colour."""
    return Styled(kind.value, COLOURS[kind])


def memory_spans(memory: Memory, state: State) -> tuple[tuple[str, str], ...]:
    """Return what follows a memory's text in a table: its tags, and its state unless it is live."""
    tags = tuple((f" #{safe(tag)}", "dim") for tag in memory.tags)
    return tags if state is State.LIVE else (*tags, (f" ({state.value})", "red"))


def _text_cell(row: MemoryRow) -> Styled:
    return Styled(shorten(one_line(row.memory.text)), spans=memory_spans(row.memory, row.state))


def _done(verb: str, memory: Memory) -> tuple[Cell, ...]:
    return tick(True), verb, Styled(safe(memory.id), "cyan"), kind_cell(memory.kind)


def _similar_hint(memory: Memory) -> str:
    text = shorten(one_line(memory.text), HINT_CHARS)
    return f"similar: {memory.id} {text}; to replace it use --supersedes {memory.id}"


def _json(row: MemoryRow) -> Json:
    record = json_record(row.memory) | {"state": row.state.value}
    told = record.pop("told")
    return record | {"fact": None if told is None else json_record(told)}


def _line(row: MemoryRow, instead_of_tags: str = "") -> Sequence[str]:
    memory = row.memory
    tags = instead_of_tags or ",".join(memory.tags) or EMPTY
    return memory.id, memory.kind.value, plain_time(memory.created_at), safe(tags), one_line(memory.text)


def _details(row: MemoryRow) -> dict[str, str]:
    """Return the fields of a memory besides its text, by name, without the empty ones."""
    memory = row.memory
    names = [each.name for each in fields(memory) if each.name not in ("owner", "text")]
    values = {name: getattr(memory, name) for name in names} | {"state": row.state}
    return {name: one_line(_format(value)) for name, value in values.items() if value not in (None, "", (), {})}


def _format(value: object) -> str:
    if isinstance(value, datetime):
        return plain_time(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)
