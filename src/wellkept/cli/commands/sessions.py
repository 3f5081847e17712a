"""Conversations: list, read, log and delete them, store their facts, and see what a model would be sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

import click

from wellkept.cli.options import (
    STANDARD_INPUT,
    DryRun,
    Limit,
    ModelOptions,
    SessionId,
    SummaryOptions,
    Where,
    decode_input,
    read_file,
    read_text,
)
from wellkept.cli.output import Block, Column, Output, Styled, confirm, list_records
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record
from wellkept.errors import Invalid
from wellkept.facts.requests import parse_conversation
from wellkept.model import AddedFacts, FoundFact, Json, Message, Role, Session
from wellkept.model.stored import place_of

COLOURS = {Role.USER.value: "cyan", Role.ASSISTANT.value: "green", Role.SYSTEM.value: "magenta"}
SESSION_COLUMNS = (
    Column("Session", lambda each: each.id, "cyan"),
    Column("Messages", lambda each: each.message_count, is_number=True),
    Column("Last used", lambda each: each.updated_at, only="wide", is_whole=True),
    Column("", lambda each: each.updated_at, only="pipe"),
    Column("Summary", lambda each: each.summary),
)


def list_sessions(
    run: Run,
    limit: Limit = 100,
    before: Annotated[str | None, Option(metavar="SESSION", help="Continue after this one.")] = None,
    where: Where = None,
) -> None:
    """List the agent's conversations, most recently used first.

    Example: wellkept session list --agent atlas"""
    place = None if before is None else place_of(run.memory.sessions.get(before))
    found = run.memory.sessions.list(where=where, before=place, limit=limit)
    page = ("--before", lambda each: each.id)
    none = "No conversations yet. Log one: wellkept session log ID --user PROMPT --assistant ANSWER"
    run.show(list_records(SESSION_COLUMNS, found, json=_session_json, limit=limit, page=page, if_empty=none))


def show(
    run: Run,
    session: SessionId,
    limit: Annotated[int | None, Option(help="Maximum number of messages; with --as-sent the newest.")] = None,
    after: Annotated[int, Option(metavar="POSITION", help="Continue after this one.")] = 0,
    as_sent: Annotated[
        bool, Option("--as-sent", help="Show what the next model call would get: the summary and what follows it.")
    ] = False,
    **options: Unpack[SummaryOptions],
) -> None:
    """Show the messages of a conversation in order, or the part that the next model call would get.

    If summarising is on, --as-sent summarises a conversation that is too long first.

    Example: wellkept session show monday --limit 10"""
    run.flags |= options
    if not as_sent:
        most = 100 if limit is None else limit
        run.show(_render_messages(run.memory.sessions.messages(session, after=after, limit=most), limit=most))
        return
    found = run.memory.sessions.conversation(session, limit=limit)
    shown = json_record(found) | {"messages": found.messages}
    del shown["turns"]
    run.show(
        Output(
            json=shown,
            lines=[(each["role"], each["content"]) for each in found.messages],
            blocks=[_message_block(each["role"], each["content"]) for each in found.messages]
            or [Styled("Nothing was said.", "dim")],
        )
    )


def log(
    run: Run,
    session: SessionId,
    user: Annotated[str, Option(help="The user's prompt; - reads standard input.")],
    assistant: Annotated[str, Option(help="The final answer; - reads standard input.")],
    remember: Annotated[bool | None, Option("--remember/--no-remember", help="Also remember both as episodes.")] = None,
    user_id: Annotated[str | None, Option(help="The end user a new session belongs to.")] = None,
    category: Annotated[
        str | None, Option(help="The category of the episodes, which sets their lifetime.", is_rare=True)
    ] = None,
) -> None:
    """Store one turn of a conversation. The first turn creates the session. It is on disk when the command ends.

    Example: wellkept session log monday --user 'Tabs or spaces?' --assistant 'Tabs.'"""
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
    file: Annotated[str, Argument(metavar="FILE", help="The conversation; - reads standard input.")],
    session: Annotated[str | None, Option(metavar="ID", help="The conversation it is.")] = None,
    dry_run: DryRun = False,
    **options: Unpack[ModelOptions],
) -> None:
    """Store the lasting facts of a conversation: JSON messages, or lines that begin with user: or assistant:.

    A configured model reads it; without one, rules do.

    Example: wellkept memory add monday.txt --dry-run"""
    run.flags |= options
    text = read_text(file) if file == STANDARD_INPUT else decode_input(read_file(Path(file)), what=file)
    run.show(_render_facts(run.memory.add(_parse_messages(text), session_id=session, dry_run=dry_run)))


def delete(run: Run, session: SessionId) -> None:
    """Delete a conversation and its messages for good. Memories from it stay.

    Example: wellkept session delete monday"""
    run.memory.sessions.delete(session)
    run.show(confirm("Deleted", session))


def _parse_messages(text: str) -> Any:
    """Return the messages of a conversation in JSON or in lines. Raises: Invalid."""
    if not text.lstrip().startswith(("[", "{")):
        return parse_conversation(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid('This is no JSON; send a list such as [{"role": "user", "content": "…"}].') from error
    return value.get("messages") if isinstance(value, dict) else value


FACT_COLUMNS = (
    Column("Change", lambda row: row[0], is_whole=True),
    Column("Id", lambda row: row[1], "cyan", is_whole=True),
    Column("Turn", lambda row: row[2], is_number=True),
    Column("Text", lambda row: row[3]),
)


def _render_facts(result: AddedFacts) -> Output:
    changes = {"added": result.added, "updated": result.updated, "superseded": result.superseded}
    rows: list[tuple[object, ...]] = [
        (f"{name} {each.replaces}" if each.replaces else name, each.id, each.turn, each.text)
        for name, facts in changes.items()
        for each in facts
    ]
    rows += [("dropped", None, each.turn, f"{each.text} ({each.reason})") for each in result.dropped]
    notes = [f"Read by rules, because the model failed: {result.problem}"] if result.problem else []
    if result.change is not None:
        notes.append(f"Undo: wellkept memory changes undo {result.change}")
    listed = list_records(FACT_COLUMNS, rows, notes=notes, if_empty="Nothing was said.")
    found = {name: [_fact_json(each) for each in facts] for name, facts in changes.items()}
    return Output(json=json_record(result) | found, lines=listed.lines, blocks=listed.blocks)


def _fact_json(fact: FoundFact) -> Json:
    return {"turn": fact.turn, "replaces": fact.replaces, **json_record(fact.memory)}


def _session_json(session: Session) -> Json:
    return {"id": session.id, "agent_id": session.owner.agent} | json_record(session)


def _render_messages(messages: Sequence[Message], *, limit: int = 0) -> Output:
    cursor = messages[-1].position if messages and len(messages) == limit else None
    blocks: list[Block] = [_message_block(each.role.value, each.content, f"{each.position} ") for each in messages]
    if cursor is not None:
        blocks.append(Styled(f"There is more: add --after {cursor}", "dim"))
    return Output(
        json={"items": [json_record(each) for each in messages], "next_cursor": cursor},
        lines=[(each.position, each.role, each.content) for each in messages],
        blocks=blocks or [Styled("Nothing was said.", "dim")],
    )


def _message_block(role: str, content: str, number: str = "") -> Block:
    return Styled(spans=((number, "dim"), (f"{role}: ", COLOURS[role]), (content, "")))
