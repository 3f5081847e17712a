"""Erasing a subject, after asking."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.errors import Invalid

NOT_ASKED = "Nobody can be asked here, so nothing was erased: add --yes, or look first with --dry-run."
NOT_CONFIRMED = "Nothing was erased."


def erase(
    run: Run,
    subject: Annotated[
        str,
        typer.Argument(
            help="agent:ID, session:ID, memory:AGENT/ID, tenant:ID, or text:WORDS for all that mentions them.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    compact: Annotated[
        bool | None,
        typer.Option(
            "--compact/--no-compact",
            help="Write the database's files anew, or leave them. Neither: overwrite what is unused.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remove everything about a subject for good, and print a receipt."""
    if dry_run:
        run.view.erasure(run.tenant.erase(subject, dry_run=True))
        return
    if not yes:
        _confirm(run, subject)
    run.view.erasure(run.tenant.erase(subject, compact=compact))


def _confirm(run: Run, subject: str) -> None:
    """Show what would go, and ask.

    Raises: Invalid when nobody answers, or not with yes.
    """
    if run.view.is_document or sys.stdin is None or not sys.stdin.isatty():
        raise Invalid(NOT_ASKED)
    run.view.erasure(run.tenant.erase(subject, dry_run=True))
    if not typer.confirm("Erase this for good?", err=True):
        raise Invalid(NOT_CONFIRMED)


COMMANDS = (Command(run=erase, example="recollect erase 'text:Mara Lindqvist' --tenant acme --dry-run"),)
