"""Looking at conversations, logging them, and seeing what a model would be shown."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.completion import complete_session
from recollect.cli.memories import STANDARD_INPUT, given_text
from recollect.cli.run import Command, Run
from recollect.cli.transcripts.options import (
    OpenaiBaseUrl,
    OpenaiModel,
    OpenaiSummaryBaseUrl,
    OpenaiSummaryModel,
    SummaryEnabled,
    SummaryKeepLast,
    SummaryThreshold,
)
from recollect.ports import place_of

SessionId = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The session's id.", show_default=False, autocompletion=complete_session),
]


def sessions(
    run: Run,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    before: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Continue behind this one.", show_default=False)
    ] = None,
) -> None:
    """List the agent's conversations, the one used last first."""
    place = None if before is None else place_of(run.memory.session(before))
    found = run.memory.sessions(before=place, limit=limit)
    run.view.sessions(found, next_cursor=found[-1].id if len(found) == limit else None)


def messages(
    run: Run,
    session: SessionId,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    after: Annotated[int, typer.Option(metavar="POSITION", help="Continue behind this one.", show_default=False)] = 0,
) -> None:
    """Show what was said in a conversation, word for word and in order."""
    found = run.memory.messages(session, after=after, limit=limit)
    run.view.messages(found, next_cursor=found[-1].position if len(found) == limit else None)


def log(
    run: Run,
    session: SessionId,
    user: Annotated[str, typer.Option(help="The user's prompt; - reads it from standard input.", show_default=False)],
    assistant: Annotated[
        str, typer.Option(help="The final answer; - reads it from standard input.", show_default=False)
    ],
    remember: Annotated[
        bool | None,
        typer.Option("--remember/--no-remember", help="Also remember both as episodes.", show_default=False),
    ] = None,
) -> None:
    """Keep one turn of a conversation. A session is begun by its first turn. When the command ends, it is on disk."""
    if user == assistant == STANDARD_INPUT:
        raise typer.BadParameter("Only one of --user and --assistant can be read from standard input.")
    logged = run.memory.log_turn(session, user=given_text(user), assistant=given_text(assistant), remember=remember)
    run.view.messages(logged, next_cursor=None)


def conversation(
    run: Run,
    session: SessionId,
    summary_enabled: SummaryEnabled = None,
    summary_threshold: SummaryThreshold = None,
    summary_keep_last: SummaryKeepLast = None,
    openai_model: OpenaiModel = None,
    openai_base_url: OpenaiBaseUrl = None,
    openai_summary_model: OpenaiSummaryModel = None,
    openai_summary_base_url: OpenaiSummaryBaseUrl = None,
) -> None:
    """Show what the next model call would be sent of a conversation: its summary and what followed.

    If summarising is on, what has become too long is summarised first."""
    run.flags |= {
        "summary_enabled": summary_enabled,
        "summary_threshold": summary_threshold,
        "summary_keep_last": summary_keep_last,
        "openai_model": openai_model,
        "openai_base_url": openai_base_url,
        "openai_summary_model": openai_summary_model,
        "openai_summary_base_url": openai_summary_base_url,
    }
    run.view.conversation(run.memory.conversation(session))


def delete_session(run: Run, session: SessionId) -> None:
    """Delete a conversation and its messages for good. What was remembered of it stays."""
    run.memory.delete_session(session)
    run.view.session_deleted(session)


COMMANDS = (
    Command(run=sessions, example="recollect sessions --agent atlas"),
    Command(run=messages, example="recollect messages monday --limit 10", lister="sessions"),
    Command(run=log, example="recollect log monday --user 'Tabs or spaces?' --assistant 'Tabs.'"),
    Command(run=conversation, example="recollect conversation monday --summary-enabled"),
    Command(run=delete_session, called="delete-session", example="recollect delete-session monday", lister="sessions"),
)
