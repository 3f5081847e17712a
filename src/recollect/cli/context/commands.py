"""Putting a prompt together, and seeing what was in earlier ones."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.memories import given_text
from recollect.cli.run import Command, Run
from recollect.policy.prompt.window import Layout


def context(
    run: Run,
    session: Annotated[str, typer.Argument(help="The conversation's id.", show_default=False)],
    message: Annotated[str, typer.Argument(help="The user's new message; - reads it from standard input.")] = "",
    system_prompt: Annotated[
        str | None, typer.Option(help="Instead of the agent's own; - reads it from standard input.", show_default=False)
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Tokens it may have; as the settings say if not given.", show_default=False)
    ] = None,
    layout: Annotated[
        Layout | None, typer.Option(help="In which order; as the settings say if not given.", show_default=False)
    ] = None,
    blocks: Annotated[bool, typer.Option("--blocks", help="Show what it is made of instead of the messages.")] = False,
) -> None:
    """Show what a model would be shown at the next call: memory, knowledge and conversation, fitted into a budget."""
    made = run.memory.context(
        session,
        given_text(message),
        system_prompt=None if system_prompt is None else given_text(system_prompt),
        budget=budget,
        layout=layout,
    )

    def see() -> str:
        kept = run.memory.context_calls(session_id=session, limit=1)  # none yet, of an agent nobody has written to
        return run.next_command("seen", made.id) if kept and kept[0].id == made.id else ""

    run.view.context(made, is_summary=blocks, see=see)


def seen(
    run: Run,
    id: Annotated[str | None, typer.Argument(help="The call; without one, the latest are listed.")] = None,
    session: Annotated[str, typer.Option(help="Only calls of this conversation.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """Show what an agent saw at an earlier call, what was left out of it, and why."""
    if id is None:
        run.view.context_calls(run.memory.context_calls(session_id=session, limit=limit))
    else:
        run.view.context_call(run.memory.context_call(id))


COMMANDS = (
    Command(run=context, example="recollect context s-1 'which indentation?' --budget 8000"),
    Command(run=seen, example="recollect seen --session s-1", lister="seen"),
)
