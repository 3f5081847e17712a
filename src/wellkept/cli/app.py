"""The program: all groups of commands, for Click to run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import click
from click.shell_completion import get_completion_class

import wellkept
from wellkept.cli.run import Command, build_command


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
        "memories": "remember list show edit forget profile review approve",
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
SHELLS = ("bash", "zsh", "fish")
COMPLETION_VARIABLE = "_WELLKEPT_COMPLETE"
"""Environment variable by which a shell asks for completions."""


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


class _Ordered(click.Group):
    """A group that lists its commands in the order of the code, not by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class _Program(_Ordered):
    """The whole program. Its help lists commands by panel."""

    panels: dict[str, str]
    """Panel of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, self.commands))
        for panel in GROUPS:
            listed = [each for name, each in self.commands.items() if self.panels[name] == panel]
            with formatter.section(panel):
                formatter.write_dl([(each.name or "", each.get_short_help_str(width)) for each in listed])


def program(named: str | None = None) -> click.Group:
    """Build the program, or only the command of this name if there is one.

    Building all of it takes longer than most commands run."""
    app = _Program(
        "wellkept",
        help="Memory for AI agents: keep what matters, find it again, see what is there.",
        epilog="Start with: wellkept remember 'Prefers tabs over spaces' --tag preference",
        params=[
            click.Option(
                ["--version"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_print_version,
                help="Show the version and exit.",
            ),
            click.Option(
                ["--show-completion"],
                type=click.Choice(SHELLS),
                expose_value=False,
                is_eager=True,
                callback=_print_completion,
                help="Show the lines that complete commands in this shell, and exit.",
            ),
        ],
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.panels = {}
    listed = [(panel, module, names.split()) for panel, each in GROUPS.items() for module, names in each.items()]
    is_known = named in SUBCOMMANDS or any(named in names for _, _, names in listed)
    for panel, module, names in listed:
        if not is_known or named in names:
            commands = [each for each in load_commands(module) if not is_known or each.name == named]
            _register(app, commands)
            app.panels |= dict.fromkeys((each.name for each in commands), panel)
    for name, each in SUBCOMMANDS.items():
        if not is_known or name == named:
            inner = _Ordered(name, help=each.about, no_args_is_help=True)
            _register(inner, load_commands(each.module, each.commands))
            app.add_command(inner)
            app.panels[name] = each.panel
    return app


def load_commands(module: str, name: str = "COMMANDS") -> Sequence[Command]:
    """Import a module of `cli.commands` and return a list of its commands."""
    commands: Sequence[Command] = getattr(import_module(f".{module}", "wellkept.cli.commands"), name)
    return commands


def _register(group: click.Group, commands: Sequence[Command]) -> None:
    for each in commands:
        # The list of commands shows the first sentence of each.
        about = SENTENCE_END.split(each.run.__doc__ or "")[0]
        built = build_command(each)
        built.short_help = f"{' '.join(about.split())}."
        built.epilog = f"Example: {each.example}"
        group.add_command(built)


def _print_version(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        click.echo(f"wellkept {wellkept.__version__}")
        ctx.exit()


def _print_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        kind = get_completion_class(shell)
        assert kind is not None
        click.echo(kind(ctx.command, {}, "wellkept", COMPLETION_VARIABLE).source())
        ctx.exit()
