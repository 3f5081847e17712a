"""Conversations: list, read, log and delete them, store their facts, and see what a model would be sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

import click

from wellkept.cli.completion import complete_session
from wellkept.cli.options import STANDARD_INPUT, ModelOptions, SummaryOptions, Where, decode_input, read_text
from wellkept.cli.output import Block, Column, Output, OutputNote, Styled, confirm, next_page, tick
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, json_record, local_time, one_line, plain_time, safe
from wellkept.errors import Invalid
from wellkept.memory.fact_requests import parse_conversation, parse_steps
from wellkept.model import AddedFacts, Conversation, FoundFact, Json, Message, Role, Session
from wellkept.model.stored import place_of

COLOURS = {Role.USER.value: "cyan", Role.ASSISTANT.value: "green", Role.SYSTEM.value: "magenta"}

SessionId = Annotated[str, Argument(metavar="SESSION", help="The session's id.", complete=complete_session)]


def sessions(
    run: Run,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    before: Annotated[str | None, Option(metavar="SESSION", help="Continue after this one.")] = None,
    where: Where = None,
) -> None:
    """List the agent's conversations, most recently used first."""
    place = None if before is None else place_of(run.memory.session(before))
    found = run.memory.sessions(where=where, before=place, limit=limit)
    run.show(_render_sessions(found, next_cursor=found[-1].id if len(found) == limit else None))


def messages(
    run: Run,
    session: SessionId,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    after: Annotated[int, Option(metavar="POSITION", help="Continue after this one.")] = 0,
) -> None:
    """Show the messages of a conversation in order."""
    found = run.memory.messages(session, after=after, limit=limit)
    run.show(_render_messages(found, next_cursor=found[-1].position if len(found) == limit else None))


def log(
    run: Run,
    session: SessionId,
    user: Annotated[str, Option(help="The user's prompt; - reads standard input.")],
    assistant: Annotated[str, Option(help="The final answer; - reads standard input.")],
    remember: Annotated[bool | None, Option("--remember/--no-remember", help="Also remember both as episodes.")] = None,
    category: Annotated[str | None, Option(help="The category of the episodes, which sets their lifetime.")] = None,
    user_id: Annotated[str | None, Option(help="The end user a new session belongs to.")] = None,
) -> None:
    """Store one turn of a conversation. The first turn creates the session. It is on disk when the command ends."""
    if user == assistant == STANDARD_INPUT:
        raise click.BadParameter("Only one of --user and --assistant can be read from standard input.")
    logged = run.memory.log_turn(
        session,
        user=read_text(user),
        assistant=read_text(assistant),
        remember=remember,
        category=category,
        user_id=user_id,
    )
    run.show(_render_messages(logged))


def add(
    run: Run,
    file: Annotated[str, Argument(metavar="FILE", help="The conversation; - reads standard input.")] = "",
    session: Annotated[str | None, Option(metavar="ID", help="The conversation it is.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be stored.")] = False,
    undo: Annotated[str | None, Option(metavar="STEPS", help="Undo an earlier add, as it says.")] = None,
    **options: Unpack[ModelOptions],
) -> None:
    """Store the lasting facts of a conversation: JSON messages, or lines that begin with user: or assistant:.

    A configured model reads it; without one, rules do."""
    run.flags |= options
    if (undo is None) == (not file):
        raise Invalid("Name the file of a conversation, - for standard input, or --undo with the steps to undo.")
    if undo is not None:
        count = run.memory.undo_add(parse_steps(undo.split(",")))
        line = f"Undone: {count} {'memory' if count == 1 else 'memories'}"
        run.show(Output(json={"undone": count}, lines=[line], blocks=[(tick(True), line)]))
        return
    messages = _read_messages(read_text(file) if file == STANDARD_INPUT else _read_file(file))
    run.show(_render_facts(run.memory.add(messages, session_id=session, dry_run=dry_run)))


def conversation(
    run: Run,
    session: SessionId,
    limit: Annotated[int | None, Option(help="Show at most this many messages, the newest.")] = None,
    **options: Unpack[SummaryOptions],
) -> None:
    """Show the part of a conversation that the next model call would get: its summary and the messages since.

    If summarising is on, a conversation that is too long is summarised first."""
    run.flags |= options
    run.show(_render_conversation(run.memory.conversation(session, limit=limit)))


def delete_session(run: Run, session: SessionId) -> None:
    """Delete a conversation and its messages for good. Memories from it stay."""
    run.memory.delete_session(session)
    run.show(confirm("Deleted", session))


COMMANDS = (
    Command(run=sessions, example="wellkept sessions --agent atlas"),
    Command(run=messages, example="wellkept messages monday --limit 10", listed_by="sessions"),
    Command(
        run=log,
        example="wellkept log monday --user 'Tabs or spaces?' --assistant 'Tabs.'",
        # Here, --user is what the user said.
        replaces=("user",),
    ),
    Command(run=add, example="wellkept add monday.txt --dry-run"),
    Command(run=conversation, example="wellkept conversation monday --summary-enabled"),
    Command(run=delete_session, alias="delete-session", example="wellkept delete-session monday", listed_by="sessions"),
)


def _read_file(name: str) -> str:
    try:
        return decode_input(Path(name).read_bytes(), what=name)
    except OSError as error:
        raise Invalid(f"{name} cannot be read: {error.strerror}.") from error


def _read_messages(text: str) -> Any:
    """Return the messages of a conversation in JSON or in lines. Raises: Invalid."""
    if not text.lstrip().startswith(("[", "{")):
        return parse_conversation(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid('This is no JSON; send a list such as [{"role": "user", "content": "…"}].') from error
    return value.get("messages") if isinstance(value, dict) else value


def _render_facts(result: AddedFacts) -> Output:
    changes = {"added": result.added, "updated": result.updated, "superseded": result.superseded}
    undo = ",".join(f"{step.change}:{step.id}:{step.version}" for step in result.steps)
    found = [(name, each) for name, facts in changes.items() for each in facts]
    rows = [
        (_describe_change(name, each), each.id or EMPTY, str(each.turn), one_line(each.text)) for name, each in found
    ]
    rows += [
        ("dropped", EMPTY, EMPTY if each.turn is None else str(each.turn), one_line(f"{each.text} ({each.reason})"))
        for each in result.dropped
    ]
    return Output(
        json={
            **{
                name: [{"turn": each.turn, "replaces": each.replaces, **json_record(each.memory)} for each in facts]
                for name, facts in changes.items()
            },
            "dropped": [json_record(each) for each in result.dropped],
            "source": result.source,
            "problem": result.problem,
            "dry_run": result.is_dry_run,
            "undo": [json_record(step) for step in result.steps],
        },
        lines=[*rows, *_advise(result, undo)],
        columns=(
            Column("Change", whole=True),
            Column("Id", "cyan", whole=True),
            Column("Turn", number=True),
            Column("Text"),
        ),
        rows=rows,
        if_empty="Nothing was said.",
        blocks=[Styled(each, "dim") for each in _advise(result, undo)],
    )


def _describe_change(name: str, fact: FoundFact) -> str:
    return f"{name} {fact.replaces}" if fact.replaces else name


def _advise(result: AddedFacts, undo: str) -> Iterator[OutputNote]:
    if result.problem:
        yield OutputNote(f"Read by rules, because the model failed: {one_line(result.problem)}")
    if undo:
        yield OutputNote(f"Undo: wellkept add --undo {undo}")


def _render_sessions(sessions: Sequence[Session], *, next_cursor: str | None) -> Output:
    return Output(
        json={"items": [_session_json(each) for each in sessions], "next_cursor": next_cursor},
        lines=(
            (
                safe(each.id),
                plain_time(each.updated_at),
                f"{each.message_count} messages, {each.summarized_count} summarised",
                one_line(each.summary) or EMPTY,
            )
            for each in sessions
        ),
        columns=(
            Column("Session", "cyan"),
            Column("Messages", number=True),
            Column("Last used", whole=True, wide_only=True),
            Column("Summary", wide_only=True),
        ),
        rows=(
            (safe(each.id), str(each.message_count), local_time(each.updated_at), one_line(each.summary))
            for each in sessions
        ),
        if_empty="No conversations yet.",
        more=next_page("--before", next_cursor),
    )


def _session_json(session: Session) -> Json:
    record = json_record(session)
    count = record.pop("summarized_count")
    return {"id": session.id, "agent_id": session.owner.agent, **record, "summarizedCount": count}


def _render_messages(messages: Sequence[Message], *, next_cursor: int | None = None) -> Output:
    return Output(
        json={"items": [json_record(each) for each in messages], "next_cursor": next_cursor},
        lines=((str(each.position), each.role.value, one_line(each.content)) for each in messages),
        blocks=_message_blocks(messages, next_cursor),
    )


def _message_blocks(messages: Sequence[Message], next_cursor: int | None) -> Iterable[Block]:
    for each in messages:
        yield _message_block(each.role.value, each.content, f"{each.position} ")
    if not messages:
        yield Styled("Nothing was said.", "dim")
    if next_cursor is not None:
        yield Styled(f"There is more: add --after {next_cursor}", "dim")


def _message_block(role: str, content: str, number: str = "") -> Block:
    return Styled(spans=((number, "dim"), (f"{role}: ", COLOURS[role]), (safe(content), "")))


def _render_conversation(conversation: Conversation) -> Output:
    messages = conversation.messages
    return Output(
        json={
            "session_id": conversation.session_id,
            "summary": conversation.summary,
            "summarizedCount": conversation.summarized_count,
            "omitted_count": conversation.omitted_count,
            "messages": messages,
        },
        lines=((each["role"], one_line(each["content"])) for each in messages),
        blocks=[_message_block(each["role"], each["content"]) for each in messages]
        or [Styled("Nothing was said.", "dim")],
    )
