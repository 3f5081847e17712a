"""Keeping memories: remember, list, show, edit, forget, and what waits for approval."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from recollect.cli.completion import complete_memory
from recollect.cli.run import Command, Run
from recollect.cli.view import Shown
from recollect.errors import Invalid
from recollect.model import Kind, Memory, Scope, State
from recollect.tools.lookalikes import lookalikes

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 1_000_000
"""More than any memory may hold, so that a file sent by mistake is not read to its end."""

ANY_STATE = "all"

MemoryId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The memory's id, such as m-7.", show_default=False, autocompletion=complete_memory
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A word to sort it by; repeat for more (at most 5).", show_default=False),
]
Importance = Annotated[float | None, typer.Option(help="From 0 to 1.", show_default=False)]
OfKind = Annotated[Kind | None, typer.Option(help="Only this kind.", show_default=False)]
WithTag = Annotated[str, typer.Option(help="Only what has this tag.", show_default=False)]


def given_time(text: str) -> datetime:
    """A time as it is typed; without a zone it is local time, as tables show it."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter("Give a time such as 2026-01-31 or 2026-01-31T12:00:00Z.") from None


AsOf = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=given_time, help="What was true then; local time if no zone is named."),
]


def remember(
    run: Run,
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from standard input.", show_default=False)],
    kind: Annotated[Kind, typer.Option(help="Which rules it lives by.")] = Kind.NOTE,
    tag: Tags = None,
    scope: Annotated[Scope | None, typer.Option(help="Whom or what it is about.", show_default=False)] = None,
    importance: Importance = None,
    session: Annotated[str | None, typer.Option(help="The conversation it comes from.", show_default=False)] = None,
    category: Annotated[str | None, typer.Option(help="What an episode lives by.", show_default=False)] = None,
    supersedes: Annotated[
        str | None, typer.Option(metavar="ID", help="The memory this one corrects.", show_default=False)
    ] = None,
) -> None:
    """Keep one short text. When the command ends, it is on disk."""
    memory = run.memory.remember(
        given_text(text),
        kind=kind,
        tags=tag or (),
        scope=scope,
        importance=importance,
        session_id=session,
        category=category,
        supersedes=supersedes,
    )
    run.view.remembered(as_shown(run, [memory])[0], lookalikes(run.memory, memory))


def list_(
    run: Run,
    kind: OfKind = None,
    tag: WithTag = "",
    state: Annotated[
        str,
        typer.Option(help=f"{', '.join(State)} or {ANY_STATE}.", autocompletion=lambda: [*State, ANY_STATE]),
    ] = State.LIVE.value,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="Continue behind this one.", show_default=False)
    ] = None,
    as_of: AsOf = None,
) -> None:
    """List memories, newest first."""
    found = run.memory.list(kind=kind, tag=tag, state=_checked_state(state), as_of=as_of, limit=limit, before=before)
    next_cursor = found[-1].id if len(found) == limit else None
    run.view.memories(as_shown(run, found, at=as_of), next_cursor=next_cursor, if_none=_none_of(run))


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
    version: Annotated[int | None, typer.Option(help="Only if it is still this version.", show_default=False)] = None,
) -> None:
    """Change a memory. What it said before stays in its history."""
    if tag and no_tags:
        raise typer.BadParameter("--tag and --no-tags exclude each other.")
    if text is None and importance is None and not tag and not no_tags:
        raise typer.BadParameter("Say what to change: --text, --tag, --no-tags or --importance.")
    tags = () if no_tags else tag or None
    new_text = None if text is None else given_text(text)
    memory = run.memory.update(id, text=new_text, tags=tags, importance=importance, version=version)
    run.view.edited(as_shown(run, [memory])[0])


def forget(run: Run, id: MemoryId) -> None:
    """Delete a memory and its history for good."""
    run.memory.forget(id)
    run.view.forgotten(id)


def review(run: Run) -> None:
    """List what waits for a person: memories held for lack of trust, and those marked as suspicious."""
    run.view.review(as_shown(run, run.memory.review()))


def approve(
    run: Run,
    id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The memory's id.", show_default=False, autocompletion=complete_memory),
    ] = None,
    workspace: Annotated[
        bool, typer.Option("--workspace", help="All notes that came with the workspace's file.")
    ] = False,
) -> None:
    """Let a memory from the review into use, or trust the notes that came with a workspace."""
    if workspace == (id is not None):
        raise typer.BadParameter("Name one memory by its id, or approve the whole file with --workspace.")
    if id is None:
        run.view.approved_workspace(run.memory.approve_workspace())
    else:
        run.view.approved(as_shown(run, [run.memory.approve(id)])[0])


COMMANDS = (
    Command(run=remember, example="recollect remember 'Prefers tabs over spaces' --tag preference"),
    Command(run=list_, called="list", example="recollect list --kind journal --limit 10"),
    Command(run=show, example="recollect show m-1", lister="list"),
    Command(run=edit, example="recollect edit m-1 --text 'Prefers two spaces'", lister="list"),
    Command(run=forget, example="recollect forget m-1", lister="list"),
    Command(run=review, example="recollect review --agent atlas"),
    Command(run=approve, example="recollect approve m-1", lister="review"),
)


def as_shown(run: Run, memories: Sequence[Memory], *, at: datetime | None = None) -> list[Shown]:
    """The memories, each with the state it is in now, or was in `at` a time."""
    moment = run.store.now() if at is None else at
    return [Shown(memory=memory, state=memory.state(moment)) for memory in memories]


def given_text(text: str) -> str:
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


def _none_of(run: Run) -> str:
    return f"Agent {run.memory.owner.agent} has none of these; recollect agents shows who has memories."


def _checked_state(state: str) -> str:
    if state not in (*State, ANY_STATE):
        raise typer.BadParameter(f"{state!r} is not one of {', '.join(State)}, {ANY_STATE}.", param_hint="--state")
    return state
