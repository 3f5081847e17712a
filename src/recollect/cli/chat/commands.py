"""Asking an agent: once, or in a conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.memories import given_text
from recollect.cli.run import Command, Run, optional_module
from recollect.cli.transcripts.options import OpenaiBaseUrl, OpenaiModel

TALK = "recollect.cli.chat.talk"
NEEDS = {"needs": "Running an agent", "extra": "agent"}

InSession = Annotated[
    str | None,
    typer.Option(metavar="SESSION", help="The conversation to go on with; a new one if not given.", show_default=False),
]


def ask(
    run: Run,
    prompt: Annotated[
        str, typer.Argument(help="What to ask; - reads it from standard input.", metavar="PROMPT", show_default=False)
    ],
    session: InSession = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An image the agent should look at; repeat for more.", show_default=False),
    ] = None,
    openai_model: OpenaiModel = None,
    openai_base_url: OpenaiBaseUrl = None,
) -> None:
    """Ask an agent something. It answers with what its memory holds in mind, and the turn is kept."""
    run.flags |= {"openai_model": openai_model, "openai_base_url": openai_base_url}
    talk = optional_module(TALK, **NEEDS)
    talk.ask_once(run, given_text(prompt), session=session, images=image or ())


def chat(
    run: Run,
    session: InSession = None,
    openai_model: OpenaiModel = None,
    openai_base_url: OpenaiBaseUrl = None,
) -> None:
    """Talk to an agent. /help lists what else can be done; Ctrl-C cancels an answer, Ctrl-D leaves."""
    run.flags |= {"openai_model": openai_model, "openai_base_url": openai_base_url}
    talk = optional_module(TALK, **NEEDS)
    talk.converse(run, session=session)


COMMANDS = (
    Command(run=chat, example="recollect chat --agent atlas --session monday"),
    Command(run=ask, example="recollect ask 'Tabs or spaces?' --session monday"),
)
