"""The program: its commands and groups of commands, for Click to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module

import click
from click.shell_completion import get_completion_class

import wellkept
from wellkept.cli.parameters import ALL, Helpful
from wellkept.cli.run import build_command

COMMANDS: Mapping[str, str] = {
    "remember": "memories.remember",
    "recall": "recall.recall",
    "context": "recall.context",
    "chat": "chat.chat",
    "serve": "server.serve",
    "mcp": "server.mcp",
    "demo": "demo.demo",
    "doctor": "doctor.doctor",
    "memory list": "memories.list_memories",
    "memory show": "memories.show",
    "memory search": "recall.search",
    "memory edit": "memories.edit",
    "memory forget": "memories.forget",
    "memory restore": "memories.restore",
    "memory explain": "recall.explain",
    "memory history": "memories.history",
    "memory add": "sessions.add",
    "memory capture": "details.capture",
    "memory review": "memories.review",
    "memory changes": "memories.changes",
    "memory items put": "items.put",
    "memory items get": "items.get",
    "memory items search": "items.search",
    "memory items delete": "items.delete",
    "memory items namespaces": "items.namespaces",
    "memory similar": "recall.similar",
    "memory details store": "details.store",
    "memory details list": "details.list_details",
    "memory details show": "details.show",
    "memory details hide": "details.hide",
    "memory details delete": "details.delete",
    "user list": "sessions.list_users",
    "user profile": "sessions.show_profile",
    "user erase": "sessions.erase_user",
    "session list": "sessions.list_sessions",
    "session show": "sessions.show",
    "session log": "sessions.log",
    "session delete": "sessions.delete",
    "session prompts": "recall.prompts",
    "knowledge ingest": "knowledge.ingest",
    "knowledge search": "knowledge.search",
    "knowledge list": "knowledge.list_documents",
    "knowledge delete": "knowledge.delete",
    "knowledge skills": "knowledge.skills",
    "knowledge show": "knowledge.show",
    "knowledge edit": "knowledge.edit",
    "data export": "data.export",
    "data import": "data.import_",
    "data backup": "data.backup",
    "data restore": "data.restore",
    "data erase": "data.erase",
    "data audit": "audit.audit",
    "data record": "audit.record",
    "admin keys create": "admin.create_key",
    "admin keys list": "admin.list_keys",
    "admin keys revoke": "admin.revoke_key",
    "admin agents list": "admin.list_agents",
    "admin agents show": "admin.show_agent",
    "admin agents edit": "admin.edit_agent",
    "admin agents remove": "admin.remove_agent",
    "admin workflows list": "admin.list_workflows",
    "admin workflows show": "admin.show_workflow",
    "admin workflows record": "admin.record_step",
    "admin maintain": "admin.maintain",
    "admin reembed": "admin.reembed",
    "admin db init": "admin.init_database",
    "admin db migrate": "admin.migrate_database",
    "admin db distribute": "admin.distribute_database",
    "admin settings": "doctor.settings",
    "admin secrets scan": "admin.scan",
    "admin secrets allow": "admin.allow",
    "admin eval": "evaluation.measure",
    "admin bench": "evaluation.measure_verbs",
    "hook": "hooks.hook",
}
"""Function of each command, as `module.name` below `cli.commands`, in the order of the help."""

GROUPS: Mapping[str, str] = {
    "memory": "One agent's memories.",
    "memory items": "JSON values under a namespace and a key.",
    "memory details": "Big texts that prompts refer to.",
    "user": "An agent's end users.",
    "session": "Conversations, and the prompts built in them.",
    "knowledge": "Documents and skills that agents share.",
    "data": "All data of a tenant or a store.",
    "admin": "Keys, agents and the care of a store.",
    "admin keys": "The keys that let programs use the server.",
    "admin agents": "The tenant's agents.",
    "admin workflows": "What agents did, step by step.",
    "admin db": "The PostgreSQL database behind a store.",
    "admin secrets": "Secrets in what is stored.",
}
"""Descriptions of groups: commands that share their first words."""

RARE = frozenset(
    (
        "memory similar",
        "memory details",
        "knowledge show",
        "knowledge edit",
        "data record",
        "hook",
    )
)
"""Commands and groups that only `--help --all` lists."""

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
    "consolidate": "memory changes consolidate",
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

    def __init__(self, path: str, about: str) -> None:
        super().__init__(path.rpartition(" ")[2] or "wellkept", help=about, short_help=about)
        self.path = path

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(WRONG_USAGE)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in list_names(self.path) if ctx.meta.get(ALL) or self._join(name) not in RARE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = self._join(cmd_name)
        if path in GROUPS:
            return _Group(path, GROUPS[path])
        if path not in COMMANDS:
            return None
        return build_command(_import(path), path, f"{self.path} list" if f"{self.path} list" in COMMANDS else "")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(f"There is no command {args[0]!r}. {self._suggest(args[0])}".strip())
        return super().resolve_command(ctx, args)

    def _suggest(self, name: str) -> str:
        """Return a sentence that names the command somebody may mean, or ""."""
        names = list_names(self.path)
        inner = [f"{self._join(each)} {name}" for each in names if name in list_names(self._join(each))]
        if places := [FORMER[name]] if name in FORMER and not self.path else inner:
            return f"Use: wellkept {', wellkept '.join(places)}"
        near = get_close_matches(name, names, n=1)
        return f"Did you mean {near[0]!r}?" if near else ""

    def _join(self, name: str) -> str:
        return f"{self.path} {name}".strip()


class _Program(_Group):
    """The whole program. Its help is one screen."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        listed = [(name, self.get_command(ctx, name)) for name in names if name not in GROUPS]
        with formatter.section("Commands"):
            width = formatter.width - 14
            formatter.write_dl([(name, each.get_short_help_str(width)) for name, each in listed if each], col_spacing=3)
        groups = [name for name in names if name in GROUPS]
        if not ctx.meta.get(ALL):
            with formatter.section(f"Groups (wellkept GROUP lists its commands, wellkept --help {ALL} everything)"):
                shown = ([each for each in list_names(name) if f"{name} {each}" not in RARE] for name in groups)
                formatter.write_dl([(name, " ".join(each)) for name, each in zip(groups, shown, strict=True)])
            return
        for name in groups:
            with formatter.section(f"{name}: {GROUPS[name]}"):
                paths = [path for path in COMMANDS if path.startswith(f"{name} ")]
                formatter.write_dl([(path, (_import(path).__doc__ or "").partition("\n")[0]) for path in paths])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(ALL):
            click.Command.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def list_names(path: str) -> list[str]:
    """Return the names of the commands and groups in a group."""
    start = f"{path} ".lstrip()
    return [*dict.fromkeys(each.removeprefix(start).partition(" ")[0] for each in COMMANDS if each.startswith(start))]


def _import(path: str) -> Callable[..., None]:
    module, _, function = COMMANDS[path].rpartition(".")
    found: Callable[..., None] = getattr(import_module(f".{module}", "wellkept.cli.commands"), function)
    return found


def program() -> click.Group:
    """Return the program."""
    app = _Program("", "Memory for AI agents: keep what matters, find it again, see what is there.")
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
