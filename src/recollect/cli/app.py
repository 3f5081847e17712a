"""The program: all groups of commands, registered with Typer."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import recollect
from recollect.cli.run import Command, build_callback
from recollect.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommands:
    """Commands that share their first word, and where they are: a list in a module of `cli.commands`."""

    about: str
    module: str
    commands: str = "COMMANDS"
    panel: str


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Getting to know it": {"demo": "demo"},
    "Memories": {
        "memories": "remember list show edit forget review approve",
        "recall": "search recall explain similar inject",
        "proposals": "consolidate proposals",
    },
    "Prompts": {"context": "context seen"},
    "Conversations": {"chat": "chat ask", "sessions": "sessions messages log add conversation delete-session"},
    "Knowledge": {"knowledge": "ingest skills"},
    "What was done": {"history": "record step workflows"},
    "Long texts": {"capture": "capture"},
    "Looking after the store": {
        "audit": "audit",
        "doctor": "settings doctor",
        "maintenance": "maintain reembed",
        "erase": "erase",
        "evaluation": "eval bench",
    },
    "Moving memories": {"transfer": "export import backup restore"},
    "For other programs": {"server": "serve mcp", ".hooks": "hook"},
}
"""Panels of the help, and the modules of the commands in them with the names of these: a run imports one of them.

The names of modules are relative to `cli.commands`."""

SENTENCE_END = re.compile(r"\.(?=\s|$)")


def is_interactive() -> bool:
    """Return True if both output streams are terminals."""
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
    "items": Subcommands(about="JSON values under a namespace and a key.", module="items", panel="Memories"),
    "kb": Subcommands(about="The tenant's documents.", module="knowledge", commands="KB_COMMANDS", panel="Knowledge"),
    "details": Subcommands(about="Big texts that prompts refer to.", module="details", panel="Long texts"),
    "agents": Subcommands(about="The tenant's agents.", module="agents", panel="Looking after the store"),
    "secrets": Subcommands(
        about="Secrets in what is stored.",
        module="maintenance",
        commands="SECRET_COMMANDS",
        panel="Looking after the store",
    ),
    "db": Subcommands(about="The database behind the store.", module=".database", panel="Looking after the store"),
    "keys": Subcommands(
        about="The keys that let programs use the server.",
        module="server",
        commands="KEY_COMMANDS",
        panel="For other programs",
    ),
}


class _Grouped(TyperGroup):
    """A program whose help lists commands by panel, also when Rich does not draw it."""

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
    """Build the program, or only the command of this name if there is one.

    Building all of it takes longer than most commands run."""
    app = typer.Typer(
        cls=_Grouped,
        no_args_is_help=True,
        # Python's own traceback shows no local variables, which may hold secrets.
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        # Help and usage errors are panels on a terminal and plain lines elsewhere.
        rich_markup_mode="rich" if is_interactive() else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="Start with: recollect remember 'Prefers tabs over spaces' --tag preference")(_program)
    listed = [(panel, module, names.split()) for panel, each in GROUPS.items() for module, names in each.items()]
    is_known = named in SUBCOMMANDS or any(named in names for _, _, names in listed)
    for panel, module, names in listed:
        if not is_known or named in names:
            commands = load_commands(module)
            _register(app, [each for each in commands if not is_known or each.name == named], panel)
    for name, each in SUBCOMMANDS.items():
        if not is_known or name == named:
            inner = typer.Typer(help=each.about, no_args_is_help=True)
            _register(inner, load_commands(each.module, each.commands))
            app.add_typer(inner, name=name, rich_help_panel=each.panel)
    return app


def load_commands(module: str, name: str = "COMMANDS") -> Sequence[Command]:
    """Import a module of `cli.commands` and return a list of its commands."""
    commands: Sequence[Command] = getattr(import_module(f".{module}", "recollect.cli.commands"), name)
    return commands


def _register(app: typer.Typer, commands: Sequence[Command], panel: str | None = None) -> None:
    for each in commands:
        # The list of commands shows the first sentence of each.
        about = SENTENCE_END.split(each.run.__doc__ or "")[0]
        app.command(
            each.name,
            epilog=f"Example: {each.example}",
            short_help=f"{' '.join(about.split())}.",
            rich_help_panel=panel,
        )(build_callback(each))
