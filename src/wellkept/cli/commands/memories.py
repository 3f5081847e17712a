"""Memories: remember, list, show, edit, forget and restore them, review what waits for approval, decide changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Any, TypedDict, Unpack, cast

import click

from wellkept.cli import output as out
from wellkept.cli.options import (
    STANDARD_INPUT,
    FilterOptions,
    MemoryId,
    Metadata,
    complete_memory,
    drop_missing,
    parse_time,
    read_text,
)
from wellkept.cli.run import Run
from wellkept.errors import Invalid, WellkeptError
from wellkept.memory.remember import find_lookalikes
from wellkept.model import (
    Change,
    ChangeAction,
    ChangedMemory,
    ChangeState,
    Json,
    Kind,
    Memory,
    MemoryVersion,
    Scope,
    State,
    StateName,
)

ANY_STATE = "all"
COLOURS = {Kind.CORE: "magenta", Kind.JOURNAL: "blue", Kind.NOTE: "green", Kind.EPISODE: "yellow", Kind.ITEM: "cyan"}
ACTIONS = ("list", "show", "apply", "reject", "undo", "consolidate")
VERBS = {ChangeAction.ADD: "adds", ChangeAction.EDIT: "edits", ChangeAction.END: "ends"}
MAX_LINES = 10_000
MAX_LINE_BYTES = 1_000_000
TIMES = ("created_at", "expires_at", "valid_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory and its state at the time that was asked for."""

    memory: Memory
    state: State


class MemoryOptions(TypedDict):
    """Fields of a new memory, by the names of the library.

    --kind: The kind of memory, which sets its rules; note if not given.
    --tag TAG: A tag; repeat for more (at most 5).
    --importance: From 0 to 1.
    --session: The conversation it comes from.
    --supersedes ID: The memory this one corrects.
    Rare:
    --scope: Who or what it is about.
    --category: The category of an episode, which sets its lifetime."""

    kind: Kind | None
    tags: list[str] | None
    importance: float | None
    session_id: str | None
    supersedes: str | None
    metadata: Metadata
    scope: Scope | None
    category: str | None


def remember(
    run: Run,
    text: str | None = None,
    batch: Path | None = None,
    secrets: str | None = None,
    **options: Unpack[MemoryOptions],
) -> None:
    """Store one short text, or a file of them. It is on disk when the command ends.

    text: The text to remember; - reads standard input.
    --batch FILE: Store every line of this JSON Lines file, or none.

    Example: wellkept remember 'Prefers tabs over spaces' --tag preference"""
    if (text is None) == (batch is None):
        raise click.BadParameter("Give either a text or --batch FILE.")
    run.flags |= {"secrets": secrets}
    given = drop_missing(options)
    if batch is not None:
        stored = _store_batch(run, batch, given)
        run.embed_stored()
        run.show(list_memories_of(run, stored, if_empty="The file is empty."))
    elif text is not None:
        run.show(_remember_text(run, read_text(text), given))


def _remember_text(run: Run, text: str, given: dict[str, Any]) -> out.Output:
    """Store a text; return it with those that it may duplicate, so that they can be merged."""
    memory = run.memory.remember(text, **given)
    similar = find_lookalikes(run.memory.review.similar, memory)
    hints = [
        out.Remark(f"similar: {each.id} {out.excerpt(each.text)}; to replace it use --supersedes {each.id}", "yellow")
        for each in similar
    ]
    done = _render_changed(run, "Remembered", memory)
    document = cast(Json, done.json) | {"similar": [{"id": each.id, "text": each.text} for each in similar]}
    return out.Output(document, [*done.blocks, *hints])


def _store_batch(run: Run, path: Path, given: dict[str, Any]) -> Sequence[Memory]:
    """Store every line of a file, or none: a JSON string, or an object with the fields of a memory.

    `given` are fields for lines that lack them. Raises: Invalid, which names the line.
    """
    read = [*_read_items(path)]
    items = [{**given, **({"text": item} if isinstance(item, str) else item)} for _, item in read]
    try:
        return run.memory.remember_many(items)
    except WellkeptError as error:
        where = "" if error.item is None else f" line {read[error.item][0]}:"
        error.args = (f"{path}:{where} {str(error).removesuffix('.')}. Nothing was stored.",)
        raise


def _read_items(path: Path) -> Iterator[tuple[int, str | dict[str, Any]]]:
    """Yield the number of each line that is not blank, and its content. Raises: Invalid."""
    try:
        with _open(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                if number > MAX_LINES:
                    raise Invalid(f"{path}: has more than {MAX_LINES:,} lines; split it. Nothing was stored.")
                if line.strip():
                    yield number, _parse_line(line, f"{path}: line {number}")
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error


def _open(path: Path) -> IO[bytes]:
    if str(path) != STANDARD_INPUT:
        return path.open("rb")
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    return sys.stdin.buffer


def _parse_line(line: bytes, where: str) -> str | dict[str, Any]:
    try:
        item = json.loads(line.decode("utf-8-sig"))
        if isinstance(item, dict):
            item |= {name: parse_time(item[name]) for name in TIMES if isinstance(item.get(name), str)}
    except (ValueError, RecursionError):
        raise Invalid(f"{where} is not JSON in UTF-8. Nothing was stored.") from None
    except click.BadParameter as error:
        raise Invalid(f"{where}: {error.message} Nothing was stored.") from None
    if not isinstance(item, str | dict):
        raise Invalid(f"{where} is neither a text in quotes nor an object with a text. Nothing was stored.")
    return item


def list_memories(
    run: Run,
    kind: Kind | None = None,
    state: Annotated[str | None, click.Choice([*map(str, State), ANY_STATE])] = None,
    limit: int = 100,
    before: str | None = None,
    as_of: datetime | None = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """List memories, newest first.

    --state STATE: live, expired, archived, held or all; by default live, unless --where names a state.
    --before ID: Continue after this one.

    Example: wellkept memory list --where "kind = journal and created_at > 2026-10-01" --limit 10"""
    chosen = cast(StateName | None, state)
    found = run.memory.list(kind=kind, state=chosen, as_of=as_of, limit=limit, before=before, **drop_missing(filters))
    none = f"Agent {run.memory.owner.agent} has none of these; wellkept admin agents list shows who has memories."
    run.show(list_memories_of(run, found, at=as_of, limit=limit, if_empty=none))


def show(run: Run, id: MemoryId) -> None:
    """Show a memory in full.

    Example: wellkept memory show m-1"""
    row = read_states(run, [run.memory.get(id)])[0]
    names = [each.name for each in fields(row.memory) if each.name not in ("owner", "text", "told")]
    values = {name: getattr(row.memory, name) for name in names} | {"state": row.state.value}
    if row.memory.fact is not None:
        values |= {name: value for name, value in out.json_record(row.memory.fact).items() if isinstance(value, str)}
    versions = [out.json_record(each) for each in run.memory.history(id)]
    run.show(out.show_fields(values, memory_json(row) | {"history": versions}, text=row.memory.text))


def history(run: Run, id: MemoryId) -> None:
    """List the earlier versions of a memory, oldest first.

    Example: wellkept memory history m-1"""
    versions: Sequence[MemoryVersion] = run.memory.history(id)
    run.show(out.list_records(VERSION_COLUMNS, versions, if_empty="It was never edited."))


def edit(
    run: Run,
    id: MemoryId,
    text: str | None = None,
    tags: list[str] | None = None,
    no_tags: bool = False,
    importance: float | None = None,
    metadata: Metadata = None,
    version: int | None = None,
    secrets: str | None = None,
) -> None:
    """Change a memory. Its earlier versions stay in its history.

    --text: The new text; - reads standard input.
    --tag TAG: A tag that replaces the old ones; repeat for more.
    --no-tags: Remove all tags.
    --importance: From 0 to 1.
    Rare:
    --version: Only if this is still its version.

    Example: wellkept memory edit m-1 --text 'Prefers two spaces'"""
    run.flags |= {"secrets": secrets}
    if tags and no_tags:
        raise click.BadParameter("--tag and --no-tags exclude each other.")
    if text is None and importance is None and not tags and not no_tags and metadata is None:
        raise click.BadParameter("Say what to change: --text, --tag, --no-tags, --importance or --metadata.")
    changed = run.memory.update(
        id,
        text=None if text is None else read_text(text),
        tags=() if no_tags else tags,
        importance=importance,
        metadata=metadata,
        version=version,
    )
    run.show(_render_changed(run, "Edited", changed))


def forget(run: Run, id: Annotated[str | None, complete_memory] = None, about: str | None = None) -> None:
    """Delete a memory and its history for good, or hide what a few words mean.

    What is forgotten by --about can be restored for 30 days. If it is not clear which memories are meant, nothing is
    forgotten, and they are listed.

    id ID: The memory's id.
    --about TEXT: What to forget, such as 'my old address'.

    Example: wellkept memory forget --about 'my old address'"""
    if (id is None) == (about is None):
        raise click.BadParameter("Give either the id of a memory or --about with what to forget.")
    if id is not None:
        run.memory.forget(id)
        run.show(out.say(f"Forgotten: {id}", {"ok": True, "id": id}))
        return
    done = run.memory.forget(about=about)
    found = (*done.forgotten, *done.candidates)
    says = "No fact and no note is clearly about that, so nothing was forgotten. Find ids with: wellkept recall TEXT"
    if done.forgotten:
        says = "Forgotten; bring one back with: wellkept memory restore ID"
        if done.candidates:
            ids = ", ".join(each.id for each in done.candidates)
            says += f". Not hidden, because they cannot be restored or are trusted more: {ids}"
    elif found:
        says = "Nothing was forgotten. Which of these do you mean? Delete it with: wellkept memory forget ID"
    names = {"forgotten": done.forgotten, "candidates": done.candidates}
    document = {name: [memory_json(each) for each in read_states(run, memories)] for name, memories in names.items()}
    table = [out.Table(MEMORY_COLUMNS, read_states(run, found))] if found else []
    run.show(out.Output(document, [out.Remark(says), *table]))


def restore(
    run: Run,
    ids: Annotated[list[str] | None, complete_memory] = None,
    state: str | None = None,
    kind: Kind | None = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """Make memories live again that were archived, expired, forgotten or ended.

    ids ID...: Ids of memories.
    --state: All memories in this state: archived or expired.

    Example: wellkept memory restore m-7 m-8"""
    # The library refuses a state that is none.
    chosen = cast(StateName | None, state)
    restored = run.memory.restore(ids or None, state=chosen, kind=kind, **drop_missing(filters))
    run.show(list_memories_of(run, restored, if_empty="There was nothing to restore."))


def review(run: Run, approve: Annotated[str | None, complete_memory] = None, approve_workspace: bool = False) -> None:
    """List memories that wait for approval and those marked as suspicious, or approve them.

    --approve ID: Let this memory into use.
    --approve-workspace: Let all notes into use that came with the workspace's file.

    Example: wellkept memory review --approve m-1"""
    if approve is not None and approve_workspace:
        raise click.BadParameter("Approve one memory, or the whole file with --approve-workspace.")
    if approve is not None:
        run.show(_render_changed(run, "Approved", run.memory.review.approve(approve)))
    elif approve_workspace:
        approved = run.memory.review.approve_workspace()
        run.show(out.say(f"Approved: {approved}", {"approved": approved}))
    else:
        found = read_states(run, run.memory.review.list())
        hint, none = "Let one into use with: wellkept memory review --approve ID", "Nothing waits for approval."
        run.show(out.list_records(REVIEW_COLUMNS, found, json=memory_json, if_empty=none, hint=hint))


def read_states(run: Run, memories: Sequence[Memory], *, at: datetime | None = None) -> list[MemoryRow]:
    """Add to each memory its state now, or `at` a time."""
    moment = run.store.now() if at is None else at
    return [MemoryRow(memory=memory, state=memory.state(moment, is_past=at is not None)) for memory in memories]


def kind_cell(kind: Kind) -> out.Styled:
    """Return the kind in its colour."""
    return out.Styled(kind.value, COLOURS[kind])


def text_cell(memory: Memory, state: State, *more: tuple[str, str]) -> out.Styled:
    """Return a memory's text, its tags, and its state unless it is live."""
    tags = tuple((f" #{out.one_line(tag)}", "dim") for tag in memory.tags)
    marks = () if state is State.LIVE else ((f" ({state.value})", "red"),)
    return out.Styled(memory.text, spans=(*tags, *marks, *more))


def _flagged_cell(row: MemoryRow) -> out.Styled:
    return text_cell(row.memory, row.state, (f"\n{out.one_line(row.memory.flag or '')}", "yellow"))


ID_COLUMNS = (
    out.Column("Id", lambda row: row.memory.id, "cyan", is_whole=True),
    out.Column("Kind", lambda row: kind_cell(row.memory.kind), is_whole=True),
)
MEMORY_COLUMNS = (
    *ID_COLUMNS,
    out.Column("Written", lambda row: row.memory.created_at, "dim", is_wide=True, is_whole=True),
    out.Column("", lambda row: row.memory.tags, only="pipe"),
    out.Column("Memory", lambda row: text_cell(row.memory, row.state)),
)
REVIEW_COLUMNS = (
    *ID_COLUMNS,
    out.Column("", lambda row: row.memory.created_at, only="pipe"),
    out.Column("", lambda row: row.memory.flag, only="pipe"),
    out.Column("Memory", _flagged_cell),
)
VERSION_COLUMNS = (
    out.Column("Version", lambda each: each.version, is_whole=True),
    out.Column("Until", lambda each: each.replaced_at, is_whole=True),
    out.Column("Said", lambda each: each.text),
)


def list_memories_of(
    run: Run, memories: Sequence[Memory], *, at: datetime | None = None, limit: int = 0, if_empty: str = ""
) -> out.Output:
    """Return a list of memories with their states."""
    page = ("--before", lambda row: row.memory.id)
    rows = read_states(run, memories, at=at)
    return out.list_records(MEMORY_COLUMNS, rows, json=memory_json, limit=limit, page=page, if_empty=if_empty)


def memory_json(row: MemoryRow) -> Json:
    """Return a memory in JSON, as REST answers with it."""
    fact = row.memory.fact
    return out.json_record(row.memory) | {
        "state": row.state.value,
        "fact": None if fact is None else out.json_record(fact),
    }


def _render_changed(run: Run, verb: str, memory: Memory) -> out.Output:
    (row,) = read_states(run, [memory])
    done: list[out.Cell] = [out.tick(True), verb, out.Styled(memory.id, "cyan"), kind_cell(memory.kind)]
    return out.Output(memory_json(row), [out.Table(MEMORY_COLUMNS, [row], only="pipe"), done])


def changes(
    run: Run,
    action: Annotated[str, click.Choice(ACTIONS)] = "list",
    id: str = "",
    state: str = ChangeState.PROPOSED.value,
) -> None:
    """List what add, turns, consolidation and edits of several memories did or propose; show one, apply or reject a
    proposed one, undo an applied one as a whole, or consolidate now.

    action ACTION: One of list, show, apply, reject, undo, consolidate.
    id ID: The change, such as c-3.
    --state: list: proposed, applied, rejected, undone or all.

    Example: wellkept memory changes undo c-3 --agent atlas"""
    known = run.memory.changes
    if action in ("list", "consolidate"):
        found = known.consolidate() if action == "consolidate" else known.list(state=state)
        waits = any(each.state is ChangeState.PROPOSED for each in found)
        hint = "Decide: wellkept memory changes apply ID, or reject ID" if waits else ""
        none = "No changes." if state == ANY_STATE else f"No {state} changes; --state all lists all."
        run.show(out.list_records(CHANGE_COLUMNS, found, if_empty=none, hint=hint))
        return
    if not id:
        raise Invalid("Name the change, such as c-3; wellkept memory changes list --state all lists them.")
    if action == "show":
        change = known.get(id)
        head = f"{change.id} {change.state.value}, by {change.cause.value}: {change.reason}"
        run.show(
            out.Output(
                out.json_record(change), [out.Remark(head, "yellow"), out.Table(CHANGED_COLUMNS, change.memories)]
            )
        )
        return
    decided = {"apply": known.apply, "reject": known.reject, "undo": known.undo}[action](id)
    run.show(
        out.say(f"{decided.state.value.capitalize()} {decided.id}: {_describe(decided)}", out.json_record(decided))
    )


def _describe(change: Change) -> str:
    """Return what a change does: "adds m-7, ends m-3 m-4"."""
    ids = {action: [each.id or "a memory" for each in change.memories if each.action is action] for action in VERBS}
    return ", ".join(f"{VERBS[action]} {' '.join(found)}" for action, found in ids.items() if found)


def _describe_text(memory: ChangedMemory) -> str:
    former = "" if memory.former_text is None else f"{memory.former_text} -> "
    by = f" (by {memory.after['ended_by']})" if memory.after.get("ended_by") else ""
    return f"{former}{memory.text}{by}"


CHANGE_COLUMNS = (
    out.Column("Id", lambda each: each.id, "cyan", is_whole=True),
    out.Column("State", lambda each: each.state, is_whole=True),
    out.Column("Cause", lambda each: each.cause, is_whole=True),
    out.Column("Does", _describe),
    out.Column("Because", lambda each: each.reason),
    out.Column("New text", lambda each: each.text),
)
CHANGED_COLUMNS = (
    out.Column("Does", lambda each: VERBS[each.action], is_whole=True),
    out.Column("Memory", lambda each: each.id, "cyan", is_whole=True),
    out.Column("Text", _describe_text),
)
