"""Servers for other programs, over HTTP and as MCP on standard input and output, and the keys they accept."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Unpack

import click

from wellkept.access.rules_keys import is_valid
from wellkept.cli.hosts import Host, HostConfig, check_url, read_text
from wellkept.cli.options import SummaryOptions, parse_time
from wellkept.cli.output import Column, Output, Styled, Unwrapped, confirm
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run, optional_module
from wellkept.cli.text import EMPTY, json_record, local_time, one_line, plain_time, safe
from wellkept.errors import Invalid
from wellkept.model import ApiKey, IssuedKey, KeyScope, Origin
from wellkept.settings import use_one_thread_each


def serve(
    run: Run,
    host: Annotated[str | None, Option(help="The address to listen on; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, Option(help="The port to listen on; 8077 by default.")] = None,
    public_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Another host name to accept, such as memory.example.org.")
    ] = None,
    workers: Annotated[
        int | None, Option(metavar="N", help="Processes that serve; by default one per processor, up to 4.")
    ] = None,
    no_auth: Annotated[bool, Option("--no-auth", help="Require no key; only on a loopback address.")] = False,
    demo: Annotated[bool, Option("--demo", help="Add sample data; the console removes it by one button.")] = False,
    **options: Unpack[SummaryOptions],
) -> None:
    """Serve REST, MCP and the console over HTTP until Ctrl-C.

    The first start creates an admin key and shows it once. SIGHUP replaces the worker processes one by one.
    """
    run.flags |= {"host": host, "port": port, "workers": workers, "public_hosts": public_host or None, **options}
    # Before the next line loads NumPy.
    use_one_thread_each()
    server = optional_module("wellkept.server.run", needs="The server", extra="server")
    server.serve(run.settings, no_auth=no_auth, has_sample=demo)


NO_HOST = """This waits for an agent host to speak MCP. A host starts it by itself, for instance after:
claude mcp add wellkept -- wellkept mcp
Ctrl-D ends it."""
"""Shown to a person who types the command to see what it does."""


class McpAction(StrEnum):
    """Something else to do than to serve."""

    INSTALL = "install"


def mcp(
    run: Run,
    action: Annotated[McpAction | None, Argument(help="Register the server in a host instead of running it.")] = None,
    host: Annotated[Host | None, Argument(help="The host to register it in.")] = None,
    sets: Annotated[str | None, Option(help="The groups of tools to offer, such as notes,recall.")] = None,
    project: Annotated[bool, Option("--project", help="install: only for the project in this folder.")] = False,
    only_print: Annotated[bool, Option("--print", help="install: only show the entry.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="install: only show the change.")] = False,
    undo: Annotated[bool, Option("--undo", help="install: take the entry out again.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="install: do not ask for confirmation.")] = False,
) -> None:
    """Run an MCP server on standard input and output, for one agent.

    `mcp install HOST` writes it into the configuration of Claude Code, Claude Desktop, Codex, Cursor, VS Code or
    Gemini CLI.
    """
    if action is McpAction.INSTALL:
        _install(run, host, sets, is_project=project, is_print=only_print, is_dry=dry_run, is_undo=undo, is_sure=yes)
        return
    run.flags |= {"tool_sets": sets}
    if sys.stdin is not None and sys.stdin.isatty():
        click.secho(NO_HOST, dim=True, err=True)
    use_one_thread_each()
    server = optional_module("wellkept.server.mcp.stdio", needs="The MCP server", extra="mcp")
    server.run_stdio(run.settings)


def _install(
    run: Run,
    host: Host | None,
    sets: str | None,
    *,
    is_project: bool,
    is_print: bool,
    is_dry: bool,
    is_undo: bool,
    is_sure: bool,
) -> None:
    """Register the server in a host, or remove it. Raises: Invalid."""
    if host is None:
        raise Invalid(f"Name the host: wellkept mcp install {'|'.join(Host)}")
    flags = {**run.flags, "sets": sets}
    if flags["url"] is not None:
        flags["url"] = check_url(str(flags["url"]))
    arguments = [word for name, value in flags.items() if value is not None for word in (f"--{name}", str(value))]
    config = HostConfig(host, arguments, is_project=is_project)
    if is_print:
        run.show(_render_change(config, False, config.render().splitlines()))
        return
    commands = config.list_commands(is_undo=is_undo)
    old = read_text(config.path)
    if commands:
        new, change = old, [shlex.join(each) for each in commands]
    else:
        new = (None if old is None else config.undo(old)) if is_undo else config.install(old or "")
        change = config.diff(old, new)
    if is_dry or not change:
        run.show(_render_change(config, False, change or [f"{config.path} needs no change."]))
        return
    if not is_sure:
        if not run.has_terminal:
            raise Invalid(NOT_ASKED)
        run.show(_render_change(config, False, change))
        if not click.confirm("Run this?" if commands else f"Write {config.path}?", err=True):
            raise Invalid("Nothing was written.")
    for each in commands:
        config.run(each)
    if not commands:
        config.write(old, new, has_backup=not is_undo)
    run.show(_render_change(config, True, [f"Changed {config.path}; restart the host to use it."]))


NOT_ASKED = "Nothing was written, because there is no terminal to confirm on. Add --yes, or look first with --dry-run."


def _render_change(config: HostConfig, is_written: bool, lines: Sequence[str]) -> Output:
    return Output(
        json={"path": str(config.path), "is_written": is_written, "entry": config.entry, "lines": list(lines)},
        lines=[safe(each) for each in lines],
        blocks=[Unwrapped(safe(each)) for each in lines],
    )


def create(
    run: Run,
    scope: Annotated[KeyScope, Option(help="What the key allows; each scope includes those before it.")],
    name: Annotated[str, Option(help="A name for the key, shown in the list.")] = "",
    expires_at: Annotated[
        datetime | None, Option(parser=parse_time, metavar="TIME", help="When the key expires.")
    ] = None,
    agents: Annotated[
        list[str] | None, Option("--agent", metavar="ID", help="Limit it to this agent; may be repeated.")
    ] = None,
    trust: Annotated[
        Origin | None, Option(help="The most trusted origin it may give a memory; by default any.")
    ] = None,
    user: Annotated[str | None, Option(help="Limit it to this end user.")] = None,
) -> None:
    """Create a key for the tenant and print it once: only its hash is stored."""
    made = run.tenant.add_key(scope, name=name, expires_at=expires_at, agents=agents or None, trust=trust, user=user)
    run.show(_render_issued(made))


def list_(run: Run) -> None:
    """List the tenant's keys, oldest first, with those that are no longer valid."""
    run.show(_render_keys(run.tenant.list_keys(), now=run.store.now()))


def revoke(run: Run, id: Annotated[str, Argument(help="The key's id, as listed.")]) -> None:
    """Revoke a key."""
    run.tenant.revoke_key(id)
    run.show(confirm("Revoked", id))


COMMANDS = (
    Command(run=serve, example="wellkept serve --port 8077 --no-auth"),
    Command(run=mcp, example="wellkept mcp --agent atlas --sets notes,recall"),
)
KEY_COMMANDS = (
    Command(
        run=create,
        example="wellkept keys create --tenant acme --scope write --agent atlas --trust tool",
        # Here, --agent and --user limit the key.
        replaces=("agent", "user"),
    ),
    Command(run=list_, example="wellkept keys list --tenant acme", alias="list"),
    Command(run=revoke, example="wellkept keys revoke mzxw6ytb --tenant acme", listed_by="keys list"),
)


def _render_issued(issued: IssuedKey) -> Output:
    """Render a new key, the only time it is shown."""
    return Output(
        json={"key": issued.key} | json_record(issued.record),
        lines=[issued.key],
        blocks=[
            Unwrapped(issued.key),
            Styled("It is shown only once. Anyone who has it can use the server.", "yellow"),
        ],
    )


def _render_keys(keys: Sequence[ApiKey], *, now: datetime) -> Output:
    return Output(
        json={"items": [json_record(each) | {"state": _state(each, now)} for each in keys], "next_cursor": None},
        lines=(
            (
                each.id,
                each.scope.value,
                _state(each, now),
                plain_time(each.created_at),
                EMPTY if each.last_used_at is None else plain_time(each.last_used_at),
                safe(each.name) or EMPTY,
                _limits(each) or EMPTY,
            )
            for each in keys
        ),
        columns=(
            Column("Id", "cyan", whole=True),
            Column("Scope", whole=True),
            Column("State", "red", whole=True),
            Column("Made", "dim", whole=True, wide_only=True),
            Column("Last used", "dim", whole=True, wide_only=True),
            Column("Name", wide_only=True),
            Column("Limits", whole=True, wide_only=True),
        ),
        rows=(
            (
                safe(each.id),
                each.scope.value,
                Styled("valid", "green") if is_valid(each, now) else _state(each, now),
                local_time(each.created_at),
                "never" if each.last_used_at is None else local_time(each.last_used_at),
                one_line(each.name),
                _limits(each),
            )
            for each in keys
        ),
        if_empty="There is no key yet: wellkept keys create --scope write",
    )


def _state(key: ApiKey, now: datetime) -> str:
    return "valid" if is_valid(key, now) else "expired" if key.revoked_at is None else "revoked"


def _limits(key: ApiKey) -> str:
    """List what limits a key besides its scope."""
    limits = [f"agent {each}" for each in key.agents]
    limits += [] if key.user is None else [f"user {safe(key.user)}"]
    return ", ".join([*limits, *([] if key.trust is None else [f"trust {key.trust.value}"])])
