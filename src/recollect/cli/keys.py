"""Who may use the server: making, listing and revoking keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from recollect.cli.memories import given_time
from recollect.cli.run import Command, Run
from recollect.model import KeyScope, Origin


def create(
    run: Run,
    scope: Annotated[
        KeyScope, typer.Option(help="What the key allows; each allows what those before it do.", show_default=False)
    ],
    name: Annotated[str, typer.Option(help="Whose it is, for the list.", show_default=False)] = "",
    expires_at: Annotated[
        datetime | None, typer.Option(parser=given_time, metavar="TIME", help="Until when.", show_default=False)
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="ID", help="Limit it to this agent; may be repeated.", show_default=False),
    ] = None,
    trust: Annotated[
        Origin | None,
        typer.Option(help="The most trusted origin it may give a memory; default: any.", show_default=False),
    ] = None,
) -> None:
    """Make a key for the tenant and print it, this once: only its hash is kept."""
    made = run.tenant.add_key(scope, name=name, expires_at=expires_at, agents=agents or None, trust=trust)
    run.view.key_made(made)


def list_(run: Run) -> None:
    """List the tenant's keys, oldest first, also those that open nothing any more."""
    run.view.keys(run.tenant.list_keys(), now=run.store.now())


def revoke(run: Run, id: Annotated[str, typer.Argument(help="The key's id, as listed.")]) -> None:
    """Let a key open nothing from now on."""
    run.tenant.revoke_key(id)
    run.view.key_revoked(id)


COMMANDS = (
    Command(
        run=create,
        example="recollect keys create --tenant acme --scope write --agent atlas --trust tool",
        replaces=("agent",),  # here it limits the key
    ),
    Command(run=list_, example="recollect keys list --tenant acme", called="list"),
    Command(run=revoke, example="recollect keys revoke mzxw6ytb --tenant acme", lister="keys list"),
)
