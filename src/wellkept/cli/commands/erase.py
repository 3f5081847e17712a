"""Erasure: remove everything about a subject, after asking."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.options import Yes, decode_input, read_file
from wellkept.cli.output import Block, Column, Line, Output, Styled, list_records, say
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, json_value, safe
from wellkept.errors import Invalid
from wellkept.model import Receipt

NOT_ASKED = "Nothing was erased, because there is no terminal to confirm on. Add --yes, or look first with --dry-run."
MAX_FOUND = 50
"""Records a dry run lists on a terminal; the counts include all."""


def erase(
    run: Run,
    subject: Annotated[
        str, Argument(help="user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID, or text:WORDS.")
    ] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would be removed.")] = False,
    yes: Yes = False,
    compact: Annotated[
        bool | None,
        Option(
            "--compact/--no-compact",
            help="Rewrite the database files, or leave them. By default, overwrite unused space.",
        ),
    ] = None,
    with_agents: Annotated[
        bool | None,
        Option("--with-agents/--keep-agents", help="Delete agents whose ids are made from the words, or keep them."),
    ] = None,
    verify: Annotated[
        Path | None, Option(metavar="FILE", help="Only check a receipt that --json printed; - reads standard input.")
    ] = None,
) -> None:
    """Remove everything about a subject for good, and print a receipt.

    Example: wellkept data erase 'text:Mara Lindqvist' --tenant acme --dry-run"""
    if verify is not None:
        run.show(_verify(run, verify))
        return
    if not subject:
        raise click.BadParameter("Name what to erase, or a receipt with --verify.")
    if dry_run:
        compact = None
    elif not yes:
        with_agents = confirm_erasure(run, subject, with_agents)
    run.show(render_receipt(run.tenant.data.erase(subject, dry_run=dry_run, compact=compact, with_agents=with_agents)))


def _verify(run: Run, path: Path) -> Output:
    """Check a receipt. Raises: Invalid when it cannot be read, or was changed."""
    try:
        receipt = json.loads(decode_input(read_file(path), what=str(path)))
    except ValueError:
        raise Invalid(f"{path}: is not JSON; a receipt is what erase --json printed.") from None
    if not isinstance(receipt, dict) or not run.library.verify_receipt(receipt):
        raise Invalid("This is not a receipt as it was issued: its hash does not fit its content.")
    return say(f"unchanged: {receipt['hash']}", {"ok": True, "hash": receipt["hash"]})


def confirm_erasure(run: Run, subject: str, with_agents: bool | None = None) -> bool | None:
    """Show what would go, and ask; return the decision about agents that a text would delete.

    Raises: Invalid when there is no terminal, or the answer is no.
    """
    if not run.has_terminal:
        raise Invalid(NOT_ASKED)
    shown = run.tenant.data.erase(subject, dry_run=True, with_agents=with_agents)
    run.show(render_receipt(shown))
    if not click.confirm("Erase this for good?", err=True):
        raise Invalid("Nothing was erased.")
    agents = [safe(each.id) for each in shown.found if each.table == "agents" and not each.is_cleared]
    if agents and with_agents is None and shown.subject == "text":
        return click.confirm(f"Delete with all they have: agent {', '.join(agents)}?", err=True)
    return with_agents


def render_receipt(receipt: Receipt) -> Output:
    """Render the receipt of an erasure, or what it would remove."""
    counted = ("Would be removed", "Would lose its words") if receipt.is_dry_run else ("Removed", "Lost its words")
    tables = sorted({*receipt.removed, *receipt.cleared})
    columns = (
        Column("Table", lambda name: name),
        Column(counted[0], receipt.removed.get, is_number=True),
        Column(counted[1], receipt.cleared.get, is_number=True),
    )
    found = list_records(FOUND_COLUMNS, receipt.found[:MAX_FOUND])
    sums = list_records(columns, tables, if_empty="Nothing mentions it.")
    return Output(
        json=json_record(receipt),
        lines=_receipt_lines(receipt),
        blocks=[*(found.blocks if receipt.found else ()), *sums.blocks, *_remainder_blocks(receipt)],
    )


FOUND_COLUMNS = (
    Column("Table", lambda each: each.table, only="wide"),
    Column("Agent", lambda each: each.agent, only="wide"),
    Column("Id", lambda each: each.id, "cyan"),
    Column("Says", lambda each: Styled(each.excerpt, "dim" if each.is_cleared else "")),
)


def _receipt_lines(receipt: Receipt) -> Iterable[Line]:
    for each in receipt.found:
        yield "clear" if each.is_cleared else "remove", each.table, each.agent, each.id, each.excerpt
    would = "would be " if receipt.is_dry_run else ""
    for done, counts in (("removed", receipt.removed), ("cleared", receipt.cleared)):
        for table, number in counts.items():
            yield f"{would}{done}", table, number
    for label, sentences in (("remains", receipt.remains), ("remnant", receipt.remnants)):
        for sentence in sentences:
            yield label, sentence
    yield "dry run" if receipt.is_dry_run else "receipt", receipt.subject, json_value(receipt.at), receipt.hash


def _remainder_blocks(receipt: Receipt) -> Iterable[Block]:
    if len(receipt.found) > MAX_FOUND:
        yield Styled(f"… and {len(receipt.found) - MAX_FOUND:,} more", "dim")
    for style, sentences in (("dim", receipt.remains), ("yellow", receipt.remnants)):
        for sentence in sentences:
            yield Styled(f"· {sentence}", style)
    if not receipt.is_dry_run:
        yield Styled(f"Receipt {receipt.hash}, {json_value(receipt.at)}", "green")
