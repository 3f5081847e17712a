"""Conversations and end users: list, read, log and delete sessions, store their facts, show and erase a user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Unpack

import click

from wellkept.cli.commands.data import confirm_erasure, render_receipt
from wellkept.cli.commands.memories import list_memories_of
from wellkept.cli.options import (
    STANDARD_INPUT,
    ModelOptions,
    SessionId,
    SummaryOptions,
    complete_session,
    decode_input,
    read_file,
    read_text,
)
from wellkept.cli.output import Block, Column, Output, Piped, Remark, Styled, confirm, json_record, list_records
from wellkept.cli.run import Run
from wellkept.errors import Invalid
from wellkept.facts.requests import parse_conversation
from wellkept.model import AddedFacts, Json, Message, Role, Session
from wellkept.model.stored import place_of

COLOURS = {Role.USER.value: "cyan", Role.ASSISTANT.value: "green", Role.SYSTEM.value: "magenta"}
NOTHING_SAID = Styled("Nothing was said.", "dim")


def list_sessions(run: Run, limit: int = 100, before: str | None = None, where: str | None = None) -> None:
    """List the agent's conversations, most recently used first.

    --before SESSION: Continue after this one.

    Example: wellkept session list --agent atlas"""
    place = None if before is None else place_of(run.memory.sessions.get(before))
    found = run.memory.sessions.list(where=where, before=place, limit=limit)
    page = ("--before", lambda each: each.id)
    none = "No conversations yet. Log one: wellkept session log ID --user PROMPT --assistant ANSWER"
    run.show(list_records(SESSION_COLUMNS, found, json=_session_json, limit=limit, page=page, if_empty=none))


def show(
    run: Run,
    session: SessionId,
    limit: int | None = None,
    after: int = 0,
    as_sent: bool = False,
    **options: Unpack[SummaryOptions],
) -> None:
    """Show the messages of a conversation in order, or the part that the next model call would get.

    If summarising is on, --as-sent summarises a conversation that is too long first.

    --limit: Maximum number of messages; with --as-sent the newest.
    --after POSITION: Continue after this one.
    --as-sent: Show what the next model call would get: the summary and what follows it.

    Example: wellkept session show monday --limit 10"""
    run.flags |= options
    if not as_sent:
        most = 100 if limit is None else limit
        run.show(_render_messages(run.memory.sessions.messages(session, after=after, limit=most), limit=most))
        return
    found = run.memory.sessions.conversation(session, limit=limit)
    document = json_record(found) | {"messages": found.messages}
    del document["turns"]
    blocks = [block for each in found.messages for block in _message_blocks(each["role"], each["content"])]
    run.show(Output(document, blocks or [NOTHING_SAID]))


def log(
    run: Run,
    session: SessionId,
    user: str,
    assistant: str,
    remember: bool | None = None,
    user_id: str | None = None,
    category: str | None = None,
) -> None:
    """Store one turn of a conversation. The first turn creates the session. It is on disk when the command ends.

    --user: The user's prompt; - reads standard input.
    --assistant: The final answer; - reads standard input.
    --remember/--no-remember: Also remember both as episodes.
    --user-id: The end user a new session belongs to.
    Rare:
    --category: The category of the episodes, which sets their lifetime.

    Example: wellkept session log monday --user 'Tabs or spaces?' --assistant 'Tabs.'"""
    if user == assistant == STANDARD_INPUT:
        raise click.BadParameter("Only one of --user and --assistant can be read from standard input.")
    user, assistant = read_text(user), read_text(assistant)
    logged = run.memory.log_turn(
        session, user=user, assistant=assistant, remember=remember, category=category, user_id=user_id
    )
    run.show(_render_messages(logged))


def add(
    run: Run,
    file: str,
    session: Annotated[str | None, complete_session] = None,
    dry_run: bool = False,
    **options: Unpack[ModelOptions],
) -> None:
    """Store the lasting facts of a conversation: JSON messages, or lines that begin with user: or assistant:.

    A configured model reads it; without one, rules do.

    file FILE: The conversation; - reads standard input.
    --session ID: The conversation it is.

    Example: wellkept memory add monday.txt --dry-run"""
    run.flags |= options
    text = read_text(file) if file == STANDARD_INPUT else decode_input(read_file(file), what=file)
    run.show(_render_facts(run.memory.add(_parse_messages(text), session_id=session, dry_run=dry_run)))


def delete(run: Run, session: SessionId) -> None:
    """Delete a conversation and its messages for good. Memories from it stay.

    Example: wellkept session delete monday"""
    run.memory.sessions.delete(session)
    run.show(confirm("Deleted", session))


def list_users(run: Run, limit: int = 100, after: str = "") -> None:
    """List the tenant's end users, by id.

    --after USER: Continue after this one.

    Example: wellkept user list --tenant acme"""
    found = run.tenant.users.list(after=after, limit=limit)
    page = ("--after", lambda each: each.user)
    run.show(list_records(USER_COLUMNS, found, limit=limit, page=page, if_empty="No memory belongs to a user yet."))


def show_profile(run: Run, subject: str | None = None) -> None:
    """Show what is true now of the user, and of those the user spoke about.

    --subject: Whom or what: user, a name, or a relation such as sister.

    Example: wellkept user profile --user u-7 --subject sister"""
    none = "Nothing is known yet. Facts come out of what users say in conversations."
    run.show(list_memories_of(run, run.memory.profile(subject=subject).facts, if_empty=none))


def erase_user(run: Run, id: str, dry_run: bool = False, yes: bool = False) -> None:
    """Remove everything of an end user for good, and print a receipt.

    id USER: The end user's id.

    Example: wellkept user erase u-7 --dry-run"""
    subject = f"user:{id}"
    if not dry_run and not yes:
        confirm_erasure(run, subject)
    run.show(render_receipt(run.tenant.data.erase(subject, dry_run=dry_run)))


SESSION_COLUMNS = (
    Column("Session", lambda each: each.id, "cyan"),
    Column("Messages", lambda each: each.message_count, is_number=True),
    Column("Last used", lambda each: each.updated_at, is_wide=True, is_whole=True),
    Column("Summary", lambda each: each.summary),
)
USER_COLUMNS = (
    Column("User", lambda each: each.user, "cyan"),
    Column("Memories", lambda each: each.memories, is_number=True),
    Column("Sessions", lambda each: each.sessions, is_number=True),
    Column("Agents", lambda each: each.agents, is_number=True),
)
FACT_COLUMNS = (
    Column("Change", lambda row: row[0], is_whole=True),
    Column("Id", lambda row: row[1], "cyan", is_whole=True),
    Column("Turn", lambda row: row[2], is_number=True),
    Column("Text", lambda row: row[3]),
)


def _parse_messages(text: str) -> Any:
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
    rows: list[tuple[object, ...]] = [
        (f"{name} {each.replaces}" if each.replaces else name, each.id, each.turn, each.text)
        for name, facts in changes.items()
        for each in facts
    ]
    rows += [("dropped", None, each.turn, f"{each.text} ({each.reason})") for each in result.dropped]
    notes = [Remark(f"Read by rules, because the model failed: {result.problem}")] if result.problem else []
    if result.change is not None:
        notes.append(Remark(f"Undo: wellkept memory changes undo {result.change}"))
    document = json_record(result)
    for name, facts in changes.items():
        document[name] = [{"turn": each.turn, "replaces": each.replaces, **json_record(each.memory)} for each in facts]
    return list_records(FACT_COLUMNS, rows, document=document, notes=notes, if_empty="Nothing was said.")


def _session_json(session: Session) -> Json:
    return {"id": session.id, "agent_id": session.owner.agent} | json_record(session)


def _render_messages(messages: Sequence[Message], *, limit: int = 0) -> Output:
    cursor = messages[-1].position if messages and len(messages) == limit else None
    blocks = [block for each in messages for block in _message_blocks(each.role.value, each.content, each.position)]
    if cursor is not None:
        blocks.append(Styled(f"There is more: add --after {cursor}", "dim"))
    document = {"items": [json_record(each) for each in messages], "next_cursor": cursor}
    return Output(document, blocks or [NOTHING_SAID])


def _message_blocks(role: str, content: str, *position: int) -> list[Block]:
    number = "".join(f"{each} " for each in position)
    return [
        Piped(*position, role, content),
        Styled(spans=((number, "dim"), (f"{role}: ", COLOURS[role]), (content, ""))),
    ]
