"""Talking to an agent: one question, or a conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

from wellkept.cli.options import ModelOptions, read_text
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run, optional_module

LOOP = "wellkept.cli.chat_loop"
NEEDS = {"needs": "Running an agent", "extra": "agent"}

InSession = Annotated[str | None, Option(metavar="SESSION", help="The conversation to continue; by default a new one.")]


def ask(
    run: Run,
    prompt: Annotated[str, Argument(help="The question; - reads standard input.", metavar="PROMPT")],
    session: InSession = None,
    image: Annotated[
        list[Path] | None, Option(metavar="FILE", help="An image the agent should look at; repeat for more.")
    ] = None,
    **options: Unpack[ModelOptions],
) -> None:
    """Ask an agent a question. It answers with its memory, and the turn is stored."""
    run.flags |= options
    loop = optional_module(LOOP, **NEEDS)
    loop.ask_once(run, read_text(prompt), session=session, images=image or ())


def chat(
    run: Run,
    message: Annotated[str | None, Argument(help="The first message; - reads standard input.")] = None,
    session: InSession = None,
    **options: Unpack[ModelOptions],
) -> None:
    """Talk to an agent. /help lists the commands; Ctrl-C cancels an answer, Ctrl-D leaves."""
    run.flags |= options
    loop = optional_module(LOOP, **NEEDS)
    loop.converse(run, None if message is None else read_text(message), session=session)


COMMANDS = (
    Command(run=chat, example="wellkept chat 'Tabs or spaces?' --session monday"),
    Command(run=ask, example="wellkept ask 'Tabs or spaces?' --session monday"),
)
