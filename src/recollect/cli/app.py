"""The program, put together from the groups of commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import recollect
from recollect.cli import capture, doctor, evaluating, finding, keys, memories, overview, serving, upkeep
from recollect.cli.chat import commands as chat
from recollect.cli.consolidation import commands as consolidation
from recollect.cli.context import commands as context
from recollect.cli.demo import commands as demo
from recollect.cli.details import commands as details
from recollect.cli.erasure import commands as erasure
from recollect.cli.history import commands as history
from recollect.cli.knowledge import documents, skills
from recollect.cli.run import Command, callback_of
from recollect.cli.transcripts import commands as transcripts
from recollect.cli.transfer import commands as transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommands:
    """Commands that share their first word."""

    about: str
    commands: Sequence[Command]
    panel: str


GROUPS: dict[str, Sequence[Command]] = {
    "Getting to know it": demo.COMMANDS,
    "Memories": (*memories.COMMANDS, *finding.COMMANDS, *consolidation.COMMANDS),
    "Prompts": context.COMMANDS,
    "Conversations": (*chat.COMMANDS, *transcripts.COMMANDS),
    "Knowledge": (*documents.COMMANDS, *skills.COMMANDS),
    "What was done": history.COMMANDS,
    "Long texts": capture.COMMANDS,
    "Looking after the store": (
        *overview.COMMANDS,
        *doctor.COMMANDS,
        *upkeep.COMMANDS,
        *erasure.COMMANDS,
        *evaluating.COMMANDS,
    ),
    "Moving memories": transfer.COMMANDS,
    "For other programs": serving.COMMANDS,
}


SENTENCE_END = re.compile(r"\.(?=\s|$)")


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


SUBCOMMANDS = {
    "kb": Subcommands(about="The tenant's documents.", commands=documents.KB_COMMANDS, panel="Knowledge"),
    "details": Subcommands(
        about="Big texts that prompts only refer to.", commands=details.COMMANDS, panel="Long texts"
    ),
    "db": Subcommands(
        about="The database behind the store.", commands=upkeep.DB_COMMANDS, panel="Looking after the store"
    ),
    "keys": Subcommands(
        about="The keys that let programs use the server.", commands=keys.COMMANDS, panel="For other programs"
    ),
}


class _Grouped(TyperGroup):
    """A program that lists its commands by what they are for, also where nothing draws panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        width = formatter.width - 6 - max(len(name) for name, _ in commands)
        for panel in GROUPS:
            of_panel = [(name, each) for name, each in commands if getattr(each, "rich_help_panel", None) == panel]
            with formatter.section(panel):
                formatter.write_dl(
                    [(name, each.get_short_help_str(width)) for name, each in of_panel if each is not None]
                )


def program(named: str | None = None) -> typer.Typer:
    """The whole program; or, because building all of it takes longer than most commands, no more of it than the command
    of this name if there is one."""
    app = typer.Typer(
        cls=_Grouped,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # Python's own traceback: it shows no local variables, which may hold secrets
        pretty_exceptions_show_locals=False,
        rich_markup_mode="rich" if is_interactive() else None,  # help and usage errors: panels, or plain lines
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="Start with: recollect remember 'Prefers tabs over spaces' --tag preference")(_program)
    is_known = named in SUBCOMMANDS or any(named == each.name for each in chain(*GROUPS.values()))
    for panel, commands in GROUPS.items():
        _register(app, [each for each in commands if not is_known or each.name == named], panel)
    for name, each in SUBCOMMANDS.items():
        if not is_known or name == named:
            inner = typer.Typer(help=each.about, no_args_is_help=True)
            _register(inner, each.commands)
            app.add_typer(inner, name=name, rich_help_panel=each.panel)
    return app


def _register(app: typer.Typer, commands: Sequence[Command], panel: str | None = None) -> None:
    for each in commands:
        about = SENTENCE_END.split(each.run.__doc__ or "")[0]  # its first sentence, for the list of commands
        app.command(
            each.name,
            epilog=f"Example: {each.example}",
            short_help=f"{' '.join(about.split())}.",
            rich_help_panel=panel,
        )(callback_of(each))
