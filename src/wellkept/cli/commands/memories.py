"""Memories: remember, list, show, edit, forget and restore them, and review those that wait for approval."""

from __future__ import annotations

from collections.abc import Sequence
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
    Limit,
    MemoryId,
    Metadata,
    OfKind,
    Secrets,
    name_options,
    parse_metadata,
    read_text,
)
from wellkept.cli.output import Column, Output, Styled, list_records, remarks, say, show_fields, tick
from wellkept.cli.parameters import Argument, Option, offer_words
from wellkept.cli.run import Run
from wellkept.cli.text import HINT_CHARS, json_record, one_line, plain_time, shorten
from wellkept.memory.similar import find_lookalikes
from wellkept.model import Json, Kind, Memory, MemoryVersion, Scope, State, StateName

ANY_STATE = "all"
COLOURS = {Kind.CORE: "magenta", Kind.JOURNAL: "blue", Kind.NOTE: "green", Kind.EPISODE: "yellow", Kind.ITEM: "cyan"}

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
    tag: Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag; repeat for more (at most 5).")] = None,
    importance: Importance = None,
    session: Annotated[str | None, Option(help="The conversation it comes from.")] = None,
    supersedes: Annotated[str | None, Option(metavar="ID", help="The memory this one corrects.")] = None,
    metadata: Metadata = None,
    batch: Annotated[
        Path | None, Option(metavar="FILE", help="Store every line of this JSON Lines file, or none.")
    ] = None,
    scope: Annotated[Scope | None, Option(help="Who or what it is about.", is_rare=True)] = None,
    category: Annotated[
        str | None, Option(help="The category of an episode, which sets its lifetime.", is_rare=True)
    ] = None,
    secrets: Secrets = None,
) -> None:
    """Store one short text, or a file of them. It is on disk when the command ends.

    Example: wellkept remember 'Prefers tabs over spaces' --tag preference"""
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
        run.show(list_memories_of(run, stored, if_empty="The file is empty."))
    elif text is not None:
        memory = run.memory.remember(read_text(text), **given)
        run.show(render_remembered(read_states(run, [memory])[0], find_lookalikes(run.memory.review.similar, memory)))


def list_memories(
    run: Run,
    kind: OfKind = None,
    state: Annotated[
        str | None,
        Option(
            help=f"{', '.join(State)} or {ANY_STATE}; by default live, unless --where names a state.",
            complete=offer_words([*State, ANY_STATE]),
        ),
    ] = None,
    limit: Limit = 100,
    before: Annotated[str | None, Option(metavar="ID", help="Continue after this one.")] = None,
    as_of: AsOf = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """List memories, newest first.

    Example: wellkept memory list --where "kind = journal and created_at > 2026-10-01" --limit 10"""
    if state not in (None, *State, ANY_STATE):
        raise click.BadParameter(f"{state!r} is not one of {', '.join(State)}, {ANY_STATE}.", param_hint="--state")
    chosen = cast(StateName | None, state)
    found = run.memory.list(kind=kind, state=chosen, as_of=as_of, limit=limit, before=before, **name_options(filters))
    none = f"Agent {run.memory.owner.agent} has none of these; wellkept admin agents list shows who has memories."
    run.show(list_memories_of(run, found, at=as_of, limit=limit, if_empty=none))


def show(run: Run, id: MemoryId) -> None:
    """Show a memory in full.

    Example: wellkept memory show m-1"""
    row = read_states(run, [run.memory.get(id)])[0]
    names = [each.name for each in fields(row.memory) if each.name not in ("owner", "text", "told")]
    values = {name: getattr(row.memory, name) for name in names} | {"state": row.state.value}
    if row.memory.fact is not None:
        values |= {name: value for name, value in json_record(row.memory.fact).items() if isinstance(value, str)}
    versions = [json_record(each) for each in run.memory.history(id)]
    run.show(show_fields(values, memory_json(row) | {"history": versions}, text=row.memory.text))


def history(run: Run, id: MemoryId) -> None:
    """List the earlier versions of a memory, oldest first.

    Example: wellkept memory history m-1"""
    columns = (
        Column("Version", lambda each: each.version, is_whole=True),
        Column("Until", lambda each: each.replaced_at, is_whole=True),
        Column("Said", lambda each: each.text),
    )
    versions: Sequence[MemoryVersion] = run.memory.history(id)
    run.show(list_records(columns, versions, if_empty="It was never edited."))


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
    version: Annotated[int | None, Option(help="Only if this is still its version.", is_rare=True)] = None,
    secrets: Secrets = None,
) -> None:
    """Change a memory. Its earlier versions stay in its history.

    Example: wellkept memory edit m-1 --text 'Prefers two spaces'"""
    run.flags |= {"secrets": secrets}
    if tag and no_tags:
        raise click.BadParameter("--tag and --no-tags exclude each other.")
    if text is None and importance is None and not tag and not no_tags and not metadata:
        raise click.BadParameter("Say what to change: --text, --tag, --no-tags, --importance or --metadata.")
    tags = () if no_tags else tag or None
    new_text = None if text is None else read_text(text)
    own = parse_metadata(metadata)
    memory = run.memory.update(id, text=new_text, tags=tags, importance=importance, metadata=own, version=version)
    run.show(_render_changed("Edited", read_states(run, [memory])[0]))


def forget(
    run: Run,
    id: Annotated[str | None, Argument(metavar="ID", help="The memory's id.", complete=complete_memory)] = None,
    about: Annotated[str | None, Option(metavar="TEXT", help="What to forget, such as 'my old address'.")] = None,
) -> None:
    """Delete a memory and its history for good, or hide what a few words mean.

    What is forgotten by --about can be restored for 30 days. If it is not clear which memories are meant, nothing is
    forgotten, and they are listed.

    Example: wellkept memory forget --about 'my old address'"""
    if (id is None) == (about is None):
        raise click.BadParameter("Give either the id of a memory or --about with what to forget.")
    if id is not None:
        run.memory.forget(id)
        run.show(say(f"Forgotten: {id}", {"ok": True, "id": id}))
        return
    done = run.memory.forget(about=about)
    found = (*done.forgotten, *done.candidates)
    names = {"forgotten": done.forgotten, "candidates": done.candidates}
    says = "No fact and no note is clearly about that, so nothing was forgotten. Find ids with: wellkept recall TEXT"
    if done.forgotten:
        says = "Forgotten; bring one back with: wellkept memory restore ID"
        if done.candidates:
            ids = ", ".join(each.id for each in done.candidates)
            says += f". Not hidden, because they cannot be restored or are trusted more: {ids}"
    elif found:
        says = "Nothing was forgotten. Which of these do you mean? Delete it with: wellkept memory forget ID"
    listed = list_memories_of(run, found)
    lines, blocks = remarks([says])
    json = {name: [memory_json(each) for each in read_states(run, memories)] for name, memories in names.items()}
    run.show(Output(json=json, lines=[*lines, *listed.lines], blocks=[*(listed.blocks if found else ()), *blocks]))


def restore(
    run: Run,
    ids: Annotated[
        list[str] | None, Argument(metavar="ID...", help="Ids of memories.", complete=complete_memory)
    ] = None,
    state: Annotated[str | None, Option(help="All memories in this state: archived or expired.")] = None,
    kind: OfKind = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """Make memories live again that were archived, expired, forgotten or ended.

    Example: wellkept memory restore m-7 m-8"""
    # The library refuses a state that is none.
    chosen = cast(StateName | None, state)
    restored = run.memory.restore(ids or None, state=chosen, kind=kind, **name_options(filters))
    run.show(list_memories_of(run, restored, if_empty="There was nothing to restore."))


def review(
    run: Run,
    approve: Annotated[
        str | None, Option(metavar="ID", help="Let this memory into use.", complete=complete_memory)
    ] = None,
    approve_workspace: Annotated[
        bool, Option("--approve-workspace", help="Let all notes into use that came with the workspace's file.")
    ] = False,
) -> None:
    """List memories that wait for approval and those marked as suspicious, or approve them.

    Example: wellkept memory review --approve m-1"""
    if approve is not None and approve_workspace:
        raise click.BadParameter("Approve one memory, or the whole file with --approve-workspace.")
    if approve is not None:
        run.show(_render_changed("Approved", read_states(run, [run.memory.review.approve(approve)])[0]))
    elif approve_workspace:
        approved = run.memory.review.approve_workspace()
        run.show(say(f"Approved: {approved}", {"approved": approved}))
    else:
        found = read_states(run, run.memory.review.list())
        hint, none = "Let one into use with: wellkept memory review --approve ID", "Nothing waits for approval."
        run.show(list_records(REVIEW_COLUMNS, found, json=memory_json, if_empty=none, hint=hint))


def read_states(run: Run, memories: Sequence[Memory], *, at: datetime | None = None) -> list[MemoryRow]:
    """Add to each memory its state now, or `at` a time."""
    moment = run.store.now() if at is None else at
    return [MemoryRow(memory=memory, state=memory.state(moment, is_past=at is not None)) for memory in memories]


def kind_cell(kind: Kind) -> Styled:
    """Return the kind in its colour."""
    return Styled(kind.value, COLOURS[kind])


def text_cell(memory: Memory, state: State, *more: tuple[str, str]) -> Styled:
    """Return a memory's text, its tags, and its state unless it is live."""
    tags = tuple((f" #{one_line(tag)}", "dim") for tag in memory.tags)
    marks = () if state is State.LIVE else ((f" ({state.value})", "red"),)
    return Styled(memory.text, spans=(*tags, *marks, *more))


MEMORY_COLUMNS = (
    Column("Id", lambda row: row.memory.id, "cyan", is_whole=True),
    Column("Kind", lambda row: kind_cell(row.memory.kind), is_whole=True),
    Column("Written", lambda row: row.memory.created_at, "dim", only="wide", is_whole=True),
    Column("", lambda row: plain_time(row.memory.created_at), only="pipe"),
    Column("", lambda row: row.memory.tags, only="pipe"),
    Column("Memory", lambda row: text_cell(row.memory, row.state)),
)
REVIEW_COLUMNS = (
    Column("Id", lambda row: row.memory.id, "cyan", is_whole=True),
    Column("Kind", lambda row: kind_cell(row.memory.kind), is_whole=True),
    Column("", lambda row: plain_time(row.memory.created_at), only="pipe"),
    Column("", lambda row: row.memory.flag, only="pipe"),
    Column(
        "Memory",
        lambda row: text_cell(row.memory, row.state, (f"\n{one_line(row.memory.flag or '')}", "yellow")),
    ),
)


def list_memories_of(
    run: Run, memories: Sequence[Memory], *, at: datetime | None = None, limit: int = 0, if_empty: str = ""
) -> Output:
    """Return a list of memories with their states."""
    page = ("--before", lambda row: row.memory.id)
    rows = read_states(run, memories, at=at)
    return list_records(MEMORY_COLUMNS, rows, json=memory_json, limit=limit, page=page, if_empty=if_empty)


def render_remembered(row: MemoryRow, similar: Sequence[Memory]) -> Output:
    """Render a new memory, and those it may duplicate, so that they can be merged."""
    hints = [
        f"similar: {each.id} {shorten(one_line(each.text), HINT_CHARS)}; to replace it use --supersedes {each.id}"
        for each in similar
    ]
    done, blocks = _render_changed("Remembered", row), remarks(hints, "yellow")
    json = memory_json(row) | {"similar": [{"id": each.id, "text": each.text} for each in similar]}
    return Output(json=json, lines=[*done.lines, *blocks[0]], blocks=[*done.blocks, *blocks[1]])


def _render_changed(verb: str, row: MemoryRow) -> Output:
    line = list_records(MEMORY_COLUMNS, [row], json=memory_json).lines
    done = (tick(True), verb, Styled(row.memory.id, "cyan"), kind_cell(row.memory.kind))
    return Output(json=memory_json(row), lines=line, blocks=[done])


def memory_json(row: MemoryRow) -> Json:
    """Return a memory in JSON, as REST answers with it."""
    fact = row.memory.fact
    return json_record(row.memory) | {"state": row.state.value, "fact": None if fact is None else json_record(fact)}
