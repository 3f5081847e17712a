"""Serving other programs: over HTTP, or as an MCP server on standard input and output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recollect.cli.run import Command, Run, optional_module
from recollect.cli.transcripts.options import (
    OpenaiBaseUrl,
    OpenaiModel,
    OpenaiSummaryBaseUrl,
    OpenaiSummaryModel,
    SummaryEnabled,
    SummaryKeepLast,
    SummaryThreshold,
)
from recollect.settings import use_one_thread_each


def serve(
    run: Run,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; 127.0.0.1 if not set.", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; 8077 if not set.", show_default=False)
    ] = None,
    public_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name it also answers to, such as memory.example.org.", show_default=False),
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Ask for no key; only on a loopback address.")] = False,
    summary_enabled: SummaryEnabled = None,
    summary_threshold: SummaryThreshold = None,
    summary_keep_last: SummaryKeepLast = None,
    openai_model: OpenaiModel = None,
    openai_base_url: OpenaiBaseUrl = None,
    openai_summary_model: OpenaiSummaryModel = None,
    openai_summary_base_url: OpenaiSummaryBaseUrl = None,
) -> None:
    """Serve REST, MCP and the console over HTTP until Ctrl-C.

    On its first start it makes an admin key and shows it once.
    """
    run.flags |= {
        "host": host,
        "port": port,
        "public_hosts": public_host or None,
        "summary_enabled": summary_enabled,
        "summary_threshold": summary_threshold,
        "summary_keep_last": summary_keep_last,
        "openai_model": openai_model,
        "openai_base_url": openai_base_url,
        "openai_summary_model": openai_summary_model,
        "openai_summary_base_url": openai_summary_base_url,
    }
    use_one_thread_each()  # before the next line loads NumPy
    server = optional_module("recollect.server.run", needs="The server", extra="server")
    server.serve(run.settings, no_auth=no_auth)


NO_HOST = """This waits for an agent host to speak MCP to it. A host starts it by itself, for instance after:
claude mcp add recollect -- recollect mcp
Ctrl-D ends it."""
"""For a person who types the command to see what it does."""


def mcp(
    run: Run,
    sets: Annotated[
        str | None, typer.Option(help="The groups of tools to offer, such as notes,recall.", show_default=False)
    ] = None,
) -> None:
    """Be an MCP server on standard input and output, for one agent."""
    run.flags |= {"tool_sets": sets}
    if sys.stdin is not None and sys.stdin.isatty():
        typer.secho(NO_HOST, dim=True, err=True)
    server = optional_module("recollect.server.mcp", needs="The MCP server", extra="mcp")
    server.run_stdio(run.settings)


COMMANDS = (
    Command(run=serve, example="recollect serve --port 8077 --no-auth"),
    Command(run=mcp, example="recollect mcp --agent atlas --sets notes,recall"),
)
