"""Talking to an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import click

from wellkept.cli.completion import complete_session
from wellkept.cli.options import ModelOptions, read_text
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run, optional_module


def chat(
    run: Run,
    message: Annotated[str | None, Argument(help="The first message; - reads standard input.")] = None,
    session: Annotated[
        str | None,
        Option(
            metavar="SESSION", help="The conversation to continue; by default a new one.", complete=complete_session
        ),
    ] = None,
    once: Annotated[bool, Option("--once", help="Answer the message, and end.")] = False,
    image: Annotated[
        list[Path] | None, Option(metavar="FILE", help="An image that goes with the message; repeat for more.")
    ] = None,
    **options: Unpack[ModelOptions],
) -> None:
    """Talk to an agent, which answers with its memory. /help lists the commands, Ctrl-D leaves.

    Every turn is stored. In a pipe, each line of standard input is a message.

    Example: wellkept chat 'Tabs or spaces?' --session monday"""
    if message is None and (once or image):
        raise click.BadParameter("--once and --image go with a message.")
    run.flags |= options
    loop = optional_module("wellkept.cli.chat_loop", needs="Running an agent", extra="agent")
    text = None if message is None else read_text(message)
    loop.converse(run, text, session=session, images=image or (), is_once=once)
