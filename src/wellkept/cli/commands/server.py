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
from wellkept.cli.options import SummaryOptions, confirm_or_refuse, parse_time
from wellkept.cli.output import Column, Output, Styled, Unwrapped, confirm, list_records
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run, optional_module
from wellkept.cli.text import json_record
from wellkept.errors import Invalid
from wellkept.model import ApiKey, KeyScope, Origin
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

    Example: wellkept serve --port 8077 --no-auth"""
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

    Example: wellkept mcp install claude --agent atlas"""
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
        if run.has_terminal:
            run.show(_render_change(config, False, change))
        question = "Run this?" if commands else f"Write {config.path}?"
        confirm_or_refuse(run, question, refusal="Nothing was written")
    for each in commands:
        config.run(each)
    if not commands:
        config.write(old, new, has_backup=not is_undo)
    run.show(_render_change(config, True, [f"Changed {config.path}; restart the host to use it."]))


def _render_change(config: HostConfig, is_written: bool, lines: Sequence[str]) -> Output:
    return Output(
        json={"path": str(config.path), "is_written": is_written, "entry": config.entry, "lines": list(lines)},
        lines=lines,
        blocks=[Unwrapped(each) for each in lines],
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
    """Create a key for the tenant and print it once: only its hash is stored.

    Example: wellkept admin keys create --tenant acme --scope write --agent atlas --trust tool"""
    made = run.tenant.keys.create(
        scope, name=name, expires_at=expires_at, agents=agents or None, trust=trust, user=user
    )
    warning = Styled("It is shown only once. Anyone who has it can use the server.", "yellow")
    json = {"key": made.key} | json_record(made.record)
    run.show(Output(json=json, lines=[made.key], blocks=[Unwrapped(made.key), warning]))


def list_keys(run: Run) -> None:
    """List the tenant's keys, oldest first, with those that are no longer valid.

    Example: wellkept admin keys list --tenant acme"""
    now = run.store.now()

    def state(key: ApiKey) -> str:
        return "valid" if is_valid(key, now) else "expired" if key.revoked_at is None else "revoked"

    columns = (
        Column("Id", lambda key: key.id, "cyan", is_whole=True),
        Column("Scope", lambda key: key.scope, is_whole=True),
        Column("State", lambda key: Styled(state(key), "green" if state(key) == "valid" else "red"), is_whole=True),
        *KEY_COLUMNS,
    )
    none = "There is no key yet: wellkept admin keys create --scope write"
    found = run.tenant.keys.list()
    run.show(list_records(columns, found, json=lambda key: json_record(key) | {"state": state(key)}, if_empty=none))


def revoke(run: Run, id: Annotated[str, Argument(help="The key's id, as listed.")]) -> None:
    """Revoke a key.

    Example: wellkept admin keys revoke mzxw6ytb --tenant acme"""
    run.tenant.keys.revoke(id)
    run.show(confirm("Revoked", id))


def _limits(key: ApiKey) -> str:
    """List what limits a key besides its scope."""
    limits = [f"agent {each}" for each in key.agents]
    limits += [] if key.user is None else [f"user {key.user}"]
    return ", ".join([*limits, *([] if key.trust is None else [f"trust {key.trust.value}"])])


KEY_COLUMNS = (
    Column("Made", lambda key: key.created_at, "dim", only="wide", is_whole=True),
    Column("", lambda key: key.created_at, only="pipe"),
    Column("Last used", lambda key: key.last_used_at or "never", "dim", only="wide", is_whole=True),
    Column("", lambda key: key.last_used_at, only="pipe"),
    Column("Name", lambda key: key.name, only="wide"),
    Column("", lambda key: key.name, only="pipe"),
    Column("Limits", _limits, only="wide", is_whole=True),
    Column("", _limits, only="pipe"),
)
