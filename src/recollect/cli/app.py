"""The program, put together from the groups of commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import recollect
from recollect.cli import capture, evaluating, finding, keys, memories, overview, serving, upkeep
from recollect.cli.consolidation import commands as consolidation
from recollect.cli.context import commands as context
from recollect.cli.details import commands as details
from recollect.cli.history import commands as history
from recollect.cli.knowledge import documents, skills
from recollect.cli.run import callback_of
from recollect.cli.transcripts import commands as transcripts

GROUPS = {
    "Memories": (*memories.COMMANDS, *finding.COMMANDS, *consolidation.COMMANDS),
    "Prompts": context.COMMANDS,
    "Conversations": transcripts.COMMANDS,
    "Knowledge": (*documents.COMMANDS, *skills.COMMANDS),
    "What was done": history.COMMANDS,
    "Long texts": capture.COMMANDS,
    "Looking after the store": (*overview.COMMANDS, *upkeep.COMMANDS, *evaluating.COMMANDS),
    "For other programs": serving.COMMANDS,
}


def is_interactive() -> bool:
    """Whether a person is looking at both streams."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"recollect {recollect.__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Memory for AI agents: keep what matters, find it again, see what is there."""


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # Python's own traceback: it shows no local variables, which may hold secrets
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
kb = typer.Typer(help="The tenant's documents.", no_args_is_help=True)
db = typer.Typer(help="The database behind the store.", no_args_is_help=True)
details_app = typer.Typer(help="Big texts that prompts only refer to.", no_args_is_help=True)
keys_app = typer.Typer(help="The keys that let programs use the server.", no_args_is_help=True)
app.callback(epilog="Start with: recollect remember 'Prefers tabs over spaces' --tag preference")(_program)
for panel, commands in GROUPS.items():
    for command in commands:
        app.command(command.name, epilog=f"Example: {command.example}", rich_help_panel=panel)(callback_of(command))
for command in documents.KB_COMMANDS:
    kb.command(command.name, epilog=f"Example: {command.example}")(callback_of(command))
app.add_typer(kb, name="kb", rich_help_panel="Knowledge")
for command in upkeep.DB_COMMANDS:
    db.command(command.name, epilog=f"Example: {command.example}")(callback_of(command))
for command in details.COMMANDS:
    details_app.command(command.name, epilog=f"Example: {command.example}")(callback_of(command))
for command in keys.COMMANDS:
    keys_app.command(command.name, epilog=f"Example: {command.example}")(callback_of(command))
app.add_typer(details_app, name="details", rich_help_panel="Memories")
app.add_typer(keys_app, name="keys", rich_help_panel="For other programs")
app.add_typer(db, name="db", rich_help_panel="Looking after the store")
