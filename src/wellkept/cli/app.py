"""The program: its commands and groups of commands, for Click to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

import click
from click.shell_completion import get_completion_class

import wellkept
from wellkept.cli.parameters import ALL, Helpful
from wellkept.cli.run import build_command


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share their first word: the function of each as `module.name`, below `cli.commands`.

    `rare` ones are listed by `--help --all`.
    """

    about: str
    commands: Mapping[str, str | Group]
    rare: Mapping[str, str | Group]


COMMANDS = Group(
    "Memory for AI agents: keep what matters, find it again, see what is there.",
    {
        "remember": "memories.remember",
        "recall": "recall.recall",
        "context": "context.context",
        "chat": "chat.chat",
        "serve": "server.serve",
        "mcp": "server.mcp",
        "demo": "demo.demo",
        "doctor": "doctor.doctor",
        "memory": Group(
            "One agent's memories.",
            {
                "list": "memories.list_memories",
                "show": "memories.show",
                "search": "recall.search",
                "edit": "memories.edit",
                "forget": "memories.forget",
                "restore": "memories.restore",
                "explain": "recall.explain",
                "history": "memories.history",
                "add": "sessions.add",
                "capture": "capture.capture",
                "review": "memories.review",
                "changes": "proposals.proposals",
                "items": Group(
                    "JSON values under a namespace and a key.",
                    {
                        "put": "items.put",
                        "get": "items.get",
                        "search": "items.search",
                        "delete": "items.delete",
                        "namespaces": "items.namespaces",
                    },
                    {},
                ),
            },
            {
                "consolidate": "proposals.consolidate",
                "similar": "recall.similar",
                "details": Group(
                    "Big texts that prompts refer to.",
                    {
                        "store": "details.store",
                        "list": "details.list_details",
                        "show": "details.show",
                        "hide": "details.hide",
                        "delete": "details.delete",
                    },
                    {},
                ),
            },
        ),
        "user": Group(
            "An agent's end users.",
            {"list": "users.list_users", "profile": "users.profile", "erase": "users.erase"},
            {},
        ),
        "session": Group(
            "Conversations, and the prompts built in them.",
            {
                "list": "sessions.list_sessions",
                "show": "sessions.show",
                "log": "sessions.log",
                "delete": "sessions.delete",
                "prompts": "context.prompts",
            },
            {},
        ),
        "knowledge": Group(
            "Documents and skills that agents share.",
            {
                "ingest": "knowledge.ingest",
                "search": "knowledge.search",
                "list": "knowledge.list_documents",
                "delete": "knowledge.delete",
                "skills": "knowledge.skills",
            },
            {"show": "knowledge.show", "edit": "knowledge.edit"},
        ),
        "data": Group(
            "All data of a tenant or a store.",
            {
                "export": "transfer.export",
                "import": "transfer.import_",
                "backup": "transfer.backup",
                "restore": "transfer.restore",
                "erase": "erase.erase",
                "audit": "audit.audit",
            },
            {"record": "history.record"},
        ),
        "admin": Group(
            "Keys, agents and the care of a store.",
            {
                "keys": Group(
                    "The keys that let programs use the server.",
                    {"create": "server.create", "list": "server.list_keys", "revoke": "server.revoke"},
                    {},
                ),
                "agents": Group(
                    "The tenant's agents.",
                    {
                        "list": "agents.list_agents",
                        "show": "agents.show",
                        "edit": "agents.edit",
                        "remove": "agents.remove",
                    },
                    {},
                ),
                "workflows": Group(
                    "What agents did, step by step.",
                    {"list": "history.list_workflows", "show": "history.show", "record": "history.record_step"},
                    {},
                ),
                "maintain": "maintenance.maintain",
                "reembed": "maintenance.reembed",
                "db": Group(
                    "The PostgreSQL database behind a store.",
                    {"init": ".database.init", "migrate": ".database.migrate", "distribute": ".database.distribute"},
                    {},
                ),
                "settings": "doctor.settings",
                "secrets": Group(
                    "Secrets in what is stored.", {"scan": "maintenance.scan", "allow": "maintenance.allow"}, {}
                ),
                "eval": "evaluation.measure",
                "bench": "evaluation.measure_verbs",
            },
            {},
        ),
    },
    {"hook": ".hooks.hook"},
)

FORMER = {
    "ask": "chat",
    "sessions": "session list",
    "messages": "session show",
    "conversation": "session show --as-sent",
    "delete-session": "session delete",
    "seen": "session prompts",
    "approve": "memory review --approve",
    "inject": "context --notes",
    "proposals": "memory changes",
    "kb": "knowledge",
    "step": "admin workflows record",
}
"""Commands until 0.2 that have another name now."""

WRONG_USAGE = 2
SHELLS = ("bash", "zsh", "fish")
COMPLETION_VARIABLE = "_WELLKEPT_COMPLETE"
"""Environment variable by which a shell asks for completions."""


class _Group(Helpful, click.Group):
    """A group that imports a command when it is needed, and lists its commands in the order of the code."""

    def __init__(self, name: str, group: Group, path: str = "") -> None:
        super().__init__(name, help=group.about, short_help=group.about)
        self.listing = group
        self.path = path

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(WRONG_USAGE)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.listing.commands, *(self.listing.rare if ctx.meta.get(ALL) else ())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.listing.commands.get(cmd_name) or self.listing.rare.get(cmd_name)
        path = f"{self.path} {cmd_name}".strip()
        if isinstance(found, Group):
            return _Group(cmd_name, found, path)
        if found is None:
            return None
        listed_by = f"{self.path} list" if self.path and "list" in self.listing.commands else ""
        return build_command(_import(found), path, listed_by)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None:
            ctx.fail(f"There is no command {name!r}. {self._suggest(name)}".strip())
        return super().resolve_command(ctx, args)

    def _suggest(self, name: str) -> str:
        """Return a sentence that names the command somebody may mean, or ""."""
        groups = {name: each for name, each in self.listing.commands.items() if isinstance(each, Group)}
        inner = [f"{group} {name}" for group, each in groups.items() if name in {**each.commands, **each.rare}]
        if places := [FORMER[name]] if name in FORMER and not self.path else inner:
            return f"Use: wellkept {', wellkept '.join(f'{self.path} {each}'.strip() for each in places)}"
        near = get_close_matches(name, [*self.listing.commands, *self.listing.rare], n=1)
        return f"Did you mean {near[0]!r}?" if near else ""


class _Program(_Group):
    """The whole program. Its help is one screen."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {name: each for name, each in self.listing.commands.items() if isinstance(each, Group)}
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx) if name not in groups]
        with formatter.section("Commands"):
            width = formatter.width - 14
            formatter.write_dl([(name, each.get_short_help_str(width)) for name, each in listed if each], col_spacing=3)
        if not ctx.meta.get(ALL):
            with formatter.section(f"Groups (wellkept GROUP lists its commands, wellkept --help {ALL} everything)"):
                formatter.write_dl([(name, " ".join(each.commands)) for name, each in groups.items()])
            return
        for name, each in groups.items():
            with formatter.section(f"{name}: {each.about}"):
                paths = list_paths(each, name)
                formatter.write_dl([(path, (_import(place).__doc__ or "").partition("\n")[0]) for path, place in paths])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(ALL):
            click.Command.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def list_paths(group: Group = COMMANDS, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the words and the function of each command, those that are rare too."""
    for name, each in [*group.commands.items(), *group.rare.items()]:
        words = f"{path} {name}".strip()
        if isinstance(each, Group):
            yield from list_paths(each, words)
        else:
            yield words, each


def load_function(words: Sequence[str]) -> tuple[Callable[..., None], str, Sequence[str]]:
    """Return the function of the command that a line begins with, its words, and the rest of the line."""
    found: str | Group = COMMANDS
    for number, word in enumerate(words, 1):
        assert isinstance(found, Group)
        found = {**found.commands, **found.rare}[word]
        if isinstance(found, str):
            return _import(found), " ".join(words[:number]), words[number:]
    raise ValueError(f"{' '.join(words)} is no command")


def _import(place: str) -> Callable[..., None]:
    module, _, function = place.rpartition(".")
    found: Callable[..., None] = getattr(import_module(f".{module}", "wellkept.cli.commands"), function)
    return found


def program() -> click.Group:
    """Return the program."""
    app = _Program("wellkept", COMMANDS)
    app.context_settings = {"help_option_names": ["-h", "--help"]}
    app.params = [
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
    ]
    return app


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
