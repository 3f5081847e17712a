"""Keeping memories: remember, list, show, edit, forget."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.cli.view import Shown
from recollect.errors import Invalid
from recollect.model import Kind, Memory, Scope, State

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000
"""More than any memory may hold, so that a file sent by mistake is not read to its end."""

ANY_STATE = "all"

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, such as m-7.", show_default=False)]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A word to sort it by; repeat for more (at most 5).", show_default=False),
]
Importance = Annotated[float | None, typer.Option(help="From 0 to 1.", show_default=False)]
OfKind = Annotated[Kind | None, typer.Option(help="Only this kind.", show_default=False)]
WithTag = Annotated[str, typer.Option(help="Only what has this tag.", show_default=False)]


def remember(
    run: Run,
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from standard input.", show_default=False)],
    kind: Annotated[Kind, typer.Option(help="Which rules it lives by.")] = Kind.NOTE,
    tag: Tags = None,
    scope: Annotated[Scope | None, typer.Option(help="Whom or what it is about.", show_default=False)] = None,
    importance: Importance = None,
    session: Annotated[str | None, typer.Option(help="The conversation it comes from.", show_default=False)] = None,
    category: Annotated[str | None, typer.Option(help="A category of your own.", show_default=False)] = None,
) -> None:
    """Keep one short text. When the command ends, it is on disk."""
    memory = run.memory.remember(
        _text(text),
        kind=kind,
        tags=tag or (),
        scope=scope,
        importance=importance,
        session_id=session,
        category=category,
    )
    run.view.remembered(as_shown(run, [memory])[0])


def list_(
    run: Run,
    kind: OfKind = None,
    tag: WithTag = "",
    state: Annotated[str, typer.Option(help=f"{', '.join(State)} or {ANY_STATE}.")] = State.LIVE.value,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="Continue behind this one.", show_default=False)
    ] = None,
) -> None:
    """List memories, newest first."""
    found = run.memory.list(kind=kind, tag=tag, state=_checked_state(state), limit=limit, before=before)
    next_cursor = found[-1].id if len(found) == limit else None
    run.view.memories(as_shown(run, found), next_cursor=next_cursor, if_none="There is nothing here.")


def show(run: Run, id: MemoryId) -> None:
    """Show one memory in full, and what it said before it was edited."""
    memory = run.memory.get(id)
    run.view.memory(as_shown(run, [memory])[0], run.memory.history(id))


def edit(
    run: Run,
    id: MemoryId,
    text: Annotated[
        str | None, typer.Option(help="The new text; - reads it from standard input.", show_default=False)
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", metavar="TAG", help="A new tag, instead of all old ones; repeat for more.", show_default=False
        ),
    ] = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
    importance: Importance = None,
) -> None:
    """Change a memory. What it said before stays in its history."""
    if tag and no_tags:
        raise typer.BadParameter("--tag and --no-tags exclude each other.")
    if text is None and importance is None and not tag and not no_tags:
        raise typer.BadParameter("Say what to change: --text, --tag, --no-tags or --importance.")
    tags = () if no_tags else tag or None
    memory = run.memory.update(id, text=None if text is None else _text(text), tags=tags, importance=importance)
    run.view.edited(as_shown(run, [memory])[0])


def forget(run: Run, id: MemoryId) -> None:
    """Delete a memory and its history for good."""
    run.memory.forget(id)
    run.view.forgotten(id)


COMMANDS = (
    Command(run=remember, example="recollect remember 'Prefers tabs over spaces' --tag preference"),
    Command(run=list_, called="list", example="recollect list --kind journal --limit 10"),
    Command(run=show, example="recollect show m-1"),
    Command(run=edit, example="recollect edit m-1 --text 'Prefers two spaces'"),
    Command(run=forget, example="recollect forget m-1"),
)


def as_shown(run: Run, memories: Sequence[Memory]) -> list[Shown]:
    """The memories, each with the state it is in now."""
    now = run.store.now()
    return [Shown(memory=memory, state=memory.state(now)) for memory in memories]


def _text(text: str) -> str:
    """`text`, or standard input for "-".

    Raises: Invalid.
    """
    if text != STANDARD_INPUT:
        return text
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    given = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(given) > MAX_INPUT_BYTES:
        raise Invalid("Standard input holds more than a megabyte; a memory is a short text.")
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"Standard input is not UTF-8 text (at byte {error.start}).") from error


def _checked_state(state: str) -> str:
    if state not in (*State, ANY_STATE):
        raise typer.BadParameter(f"{state!r} is not one of {', '.join(State)}, {ANY_STATE}.", param_hint="--state")
    return state
