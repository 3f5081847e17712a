"""Serving other programs: over HTTP, or as an MCP server on standard input and output."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.errors import Invalid


def serve(
    run: Run,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; 127.0.0.1 if not set.", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; 8077 if not set.", show_default=False)
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Ask for no key; only on a loopback address.")] = False,
) -> None:
    """Serve REST over HTTP until Ctrl-C."""
    run.flags |= {"host": host, "port": port}
    server = _optional("recollect.server.run", needs="The server", extra="server")
    server.serve(run.settings, no_auth=no_auth)


def mcp(
    run: Run,
    sets: Annotated[
        str | None, typer.Option(help="The groups of tools to offer, such as notes,recall.", show_default=False)
    ] = None,
) -> None:
    """Be an MCP server on standard input and output, for one agent."""
    run.flags |= {"tool_sets": sets}
    server = _optional("recollect.server.mcp", needs="The MCP server", extra="mcp")
    server.run_stdio(run.settings)


COMMANDS = (
    Command(run=serve, example="recollect serve --port 8077 --no-auth"),
    Command(run=mcp, example="recollect mcp --agent atlas --sets notes,recall"),
)


def _optional(module: str, *, needs: str, extra: str) -> ModuleType:
    """A module of ours that needs packages not everybody has.

    Raises: Invalid, which says what to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "recollect":
            raise  # not a package that is missing, but a part of us
        raise Invalid(f"{needs} needs more packages; run: pip install 'recollect[{extra}]'") from error
