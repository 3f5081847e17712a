"""Erasure: remove everything about a subject, after asking."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.output import Block, Column, Line, Output, Styled, Table
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, json_record, json_value, one_line, safe
from wellkept.errors import Invalid
from wellkept.model import Receipt

NOT_ASKED = "Nothing was erased, because there is no terminal to confirm on. Add --yes, or look first with --dry-run."
NOT_CONFIRMED = "Nothing was erased."
MAX_FOUND = 50
"""Records a dry run lists on a terminal; the counts include all."""


def erase(
    run: Run,
    subject: Annotated[
        str, Argument(help="user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID, or text:WORDS.")
    ] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would be removed.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
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
    """Remove everything about a subject for good, and print a receipt."""
    if verify is not None:
        run.show(_verify(run, verify))
        return
    if not subject:
        raise click.BadParameter("Name what to erase, or a receipt with --verify.")
    if dry_run:
        run.show(_render_receipt(run.tenant.erase(subject, dry_run=True, with_agents=with_agents)))
        return
    if not yes:
        with_agents = _confirm(run, subject, with_agents)
    run.show(_render_receipt(run.tenant.erase(subject, compact=compact, with_agents=with_agents)))


def _verify(run: Run, path: Path) -> Output:
    """Check a receipt. Raises: Invalid when it cannot be read, or was changed."""
    try:
        receipt = json.loads(sys.stdin.read() if path == Path("-") else path.read_text("utf-8"))
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError:
        raise Invalid(f"{path}: is not JSON; a receipt is what erase --json printed.") from None
    if not isinstance(receipt, dict) or not run.library.verify_receipt(receipt):
        raise Invalid("This is not a receipt as it was issued: its hash does not fit its content.")
    return Output(
        json={"ok": True, "hash": receipt["hash"]},
        lines=[f"unchanged\t{one_line(receipt['hash'])}"],
        blocks=[Styled("The receipt is as it was issued.", "green")],
    )


def _confirm(run: Run, subject: str, with_agents: bool | None) -> bool | None:
    """Show what would go, and ask; return the decision about agents that a text would delete.

    Raises: Invalid when there is no terminal, or the answer is no.
    """
    if not run.has_terminal:
        raise Invalid(NOT_ASKED)
    shown = run.tenant.erase(subject, dry_run=True, with_agents=with_agents)
    run.show(_render_receipt(shown))
    if not click.confirm("Erase this for good?", err=True):
        raise Invalid(NOT_CONFIRMED)
    agents = [safe(each.id) for each in shown.found if each.table == "agents" and not each.is_cleared]
    if agents and with_agents is None and shown.subject == "text":
        return click.confirm(f"Delete with all they have: agent {', '.join(agents)}?", err=True)
    return with_agents


COMMANDS = (Command(run=erase, example="wellkept erase 'text:Mara Lindqvist' --tenant acme --dry-run"),)


def _render_receipt(receipt: Receipt) -> Output:
    return Output(
        json=json_record(receipt) | {"found": [json_record(each) for each in receipt.found]},
        lines=_receipt_lines(receipt),
        intro=_found_blocks(receipt),
        columns=_count_columns(receipt),
        rows=(
            (name, _format(receipt.removed.get(name)), _format(receipt.cleared.get(name)))
            for name in sorted({*receipt.removed, *receipt.cleared})
        ),
        if_empty="Nothing mentions it.",
        blocks=_remainder_blocks(receipt),
    )


def _receipt_lines(receipt: Receipt) -> Iterable[Line]:
    for each in receipt.found:
        verb = "clear" if each.is_cleared else "remove"
        yield verb, each.table, each.agent or EMPTY, each.id, one_line(each.excerpt)
    would = "would be " if receipt.is_dry_run else ""
    for done, counts in (("removed", receipt.removed), ("cleared", receipt.cleared)):
        for table, count in counts.items():
            yield f"{would}{done}\t{table}\t{count}"
    for label, sentences in (("remains", receipt.remains), ("remnant", receipt.remnants)):
        for sentence in sentences:
            yield f"{label}\t{sentence}"
    yield "dry run" if receipt.is_dry_run else "receipt", receipt.subject, json_value(receipt.at), receipt.hash


def _found_blocks(receipt: Receipt) -> Iterable[Block]:
    if receipt.found:
        yield Table(
            (Column("Table", wide_only=True), Column("Agent", wide_only=True), Column("Id", "cyan"), Column("Says")),
            (
                (
                    each.table,
                    safe(each.agent),
                    safe(each.id),
                    Styled(one_line(each.excerpt), "dim" if each.is_cleared else ""),
                )
                for each in receipt.found[:MAX_FOUND]
            ),
        )
    if len(receipt.found) > MAX_FOUND:
        yield Styled(f"… and {len(receipt.found) - MAX_FOUND:,} more", "dim")


def _count_columns(receipt: Receipt) -> list[Column]:
    counted = ("Would be removed", "Would lose its words") if receipt.is_dry_run else ("Removed", "Lost its words")
    return [Column("Table"), *(Column(header, number=True) for header in counted)]


def _format(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _remainder_blocks(receipt: Receipt) -> Iterable[Block]:
    for style, sentences in (("dim", receipt.remains), ("yellow", receipt.remnants)):
        for sentence in sentences:
            yield Styled(f"· {safe(sentence)}", style)
    if not receipt.is_dry_run:
        yield Styled(f"Receipt {receipt.hash}, {json_value(receipt.at)}", "green")
