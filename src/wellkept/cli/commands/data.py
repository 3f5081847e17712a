"""All data of a tenant or a store: exports, imports, backups, restoring, and erasure of a subject after asking."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wellkept.cli import output as out
from wellkept.cli.options import decode_input, read_file
from wellkept.cli.run import REFUSED, Run
from wellkept.errors import Invalid
from wellkept.model import BackupReport, ImportReport, Receipt

STREAM = Path("-")
NOT_ASKED = "Nothing was erased, because there is no terminal to confirm on. Add --yes, or look first with --dry-run."
MAX_FOUND = 50
"""Records a dry run lists on a terminal; the counts include all."""


def export(run: Run, path: Path = STREAM, user: str | None = None) -> None:
    """Write all data of the tenant, except keys, to a file that any store can import.

    path PATH: The file; .gz or .zst compresses it, - is standard output.
    --user: Only the records of this end user.

    Example: wellkept data export acme.jsonl.zst --tenant acme"""
    if path != STREAM:
        with run.progress("Exporting") as bar:
            exported = run.tenant.data.export(path, progress=bar.report, user=user)
        document = out.json_record(exported) | {"path": str(path)}
        notes = [out.Remark(out.one_line(each)) for each in exported.problems]
        run.show(out.list_records(COUNT_COLUMNS, [*exported.counts.items()], document=document, notes=notes))
        return
    if run.printer.is_json:
        raise click.BadParameter("--json reports on a file: name one, or omit --json.")
    if sys.stdout is None:
        raise Invalid("There is no standard output to write to.")
    run.tenant.data.export(sys.stdout.buffer, user=user)


def import_(
    run: Run,
    path: Path,
    from_: str | None = None,
    merge: bool = False,
    remember: bool = False,
    trusted: bool = False,
    with_erased: bool = False,
    dry_run: bool = False,
) -> None:
    """Import an export, or the memories of another program. Existing records do not change.

    Memories without an agent go to --agent.

    path PATH: The file; - reads standard input.
    --from FORMAT: The program that wrote it, if it cannot be detected.
    --merge: Where ids conflict, keep what is in the store and skip the other.
    --remember: Also remember the messages of imported conversations as episodes.
    --trusted: Believe an export that is not signed; its core memories need no review.
    --with-erased: Bring back what was erased here.

    Example: wellkept data import acme.jsonl.zst --tenant acme --dry-run"""
    with _as_file(path) as file, run.progress("Importing") as bar:
        imported = run.tenant.data.import_(
            file,
            format=from_,
            merge=merge,
            remember=remember,
            trusted=trusted,
            with_erased=with_erased,
            dry_run=dry_run,
            progress=bar.report,
        )
    if not dry_run:
        run.embed_stored()
    run.show(_render_imported(imported))
    if imported.refused_count and not imported.added and not imported.present:
        raise click.exceptions.Exit(REFUSED)


def backup(run: Run, path: Path, verify: bool = False) -> None:
    """Write the whole store, all tenants, to one compressed file while it stays in use.

    path FILE: The backup to write or to check.
    --verify: Check an existing backup instead of making one.

    Example: wellkept data backup monday.tar.zst"""
    with run.progress("Checking" if verify else "Backing up") as bar:
        check_or_write = run.library.verify_backup if verify else run.store.backup
        report = check_or_write(path, progress=bar.report)
    run.show(_render_backup(report, path))


def restore(run: Run, path: Path) -> None:
    """Restore a backup, to the store that --url names, which must not exist yet.

    path FILE: A file that wellkept data backup wrote.

    Example: wellkept data restore monday.tar.zst --url sqlite:///restored.db"""
    with run.progress("Restoring") as bar:
        report = run.library.restore(path, to=run.settings.store_url, progress=bar.report)
    run.show(_render_backup(report, path))


@contextmanager
def _as_file(path: Path) -> Iterator[Path]:
    """Yield a file that can be read twice: standard input is copied to a temporary file."""
    if path != STREAM:
        yield path
        return
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    with tempfile.NamedTemporaryFile(prefix="wellkept-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


COUNT_COLUMNS = (
    out.Column("What", lambda row: row[0], "cyan"),
    out.Column("Rows", lambda row: row[1], is_number=True),
)
BACKUP_COLUMNS = (
    out.Column("Made at", lambda report: report.created_at, "cyan"),
    out.Column("Texts", lambda report: report.texts, is_number=True, unit=" texts"),
    out.Column("Bytes", lambda report: report.bytes, is_number=True, unit=" bytes"),
)


def _render_backup(report: BackupReport, path: Path) -> out.Output:
    document = out.json_record(report) | {"path": str(path), "created_at": out.plain_time(report.created_at)}
    notes = [out.Remark(out.one_line(each)) for each in report.problems]
    return out.list_records(BACKUP_COLUMNS, [report], document=document, notes=notes)


def _render_imported(imported: ImportReport) -> out.Output:
    added = "would be added" if imported.is_dry_run else "added"
    columns = (
        out.Column("What", lambda table: table, "cyan"),
        out.Column(added.capitalize(), lambda table: imported.added.get(table, 0), is_number=True, unit=f" {added}"),
        out.Column(
            "There already",
            lambda table: imported.present.get(table, 0),
            "dim",
            is_number=True,
            unit=" there already",
        ),
    )
    notes: list[str] = []
    for items, total in ((imported.refused, imported.refused_count), (imported.flagged, imported.flagged_count)):
        notes += [f"{out.one_line(each.place)}: {out.one_line(each.reason)}" for each in items]
        if total > len(items):
            notes.append(f"and {total - len(items):,} more")
    notes += map(out.one_line, imported.problems)
    tables, document = [*dict.fromkeys([*imported.added, *imported.present])], out.json_record(imported)
    return out.list_records(
        columns, tables, document=document, if_empty="Nothing came in.", notes=map(out.Remark, notes)
    )


def erase(
    run: Run,
    subject: str = "",
    dry_run: bool = False,
    yes: bool = False,
    compact: bool | None = None,
    with_agents: bool | None = None,
    verify: Path | None = None,
) -> None:
    """Remove everything about a subject for good, and print a receipt.

    subject: user:ID, agent:ID, session:ID, memory:AGENT/ID, tenant:ID, or text:WORDS.
    --dry-run: Only list what would be removed.
    --compact/--no-compact: Rewrite the database files, or leave them. By default, overwrite unused space.
    --with-agents/--keep-agents: Delete agents whose ids are made from the words, or keep them.
    --verify FILE: Only check a receipt that --json printed; - reads standard input.

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


def _verify(run: Run, path: Path) -> out.Output:
    """Check a receipt. Raises: Invalid when it cannot be read, or was changed."""
    try:
        receipt = json.loads(decode_input(read_file(path), what=str(path)))
    except ValueError:
        raise Invalid(f"{path}: is not JSON; a receipt is what erase --json printed.") from None
    if not isinstance(receipt, dict) or not run.library.verify_receipt(receipt):
        raise Invalid("This is not a receipt as it was issued: its hash does not fit its content.")
    return out.say(f"unchanged: {receipt['hash']}", {"ok": True, "hash": receipt["hash"]})


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
    agents = [out.safe(each.id) for each in shown.found if each.table == "agents" and not each.is_cleared]
    if agents and with_agents is None and shown.subject == "text":
        return click.confirm(f"Delete with all they have: agent {', '.join(agents)}?", err=True)
    return with_agents


def render_receipt(receipt: Receipt) -> out.Output:
    """Render the receipt of an erasure, or what it would remove."""
    blocks: list[out.Block] = [
        out.Piped("clear" if each.is_cleared else "remove", each.table, each.agent, each.id, each.excerpt)
        for each in receipt.found
    ]
    blocks += [out.Table(FOUND_COLUMNS, receipt.found[:MAX_FOUND], only="terminal")] if receipt.found else []
    blocks += _count_erased(receipt)
    if len(receipt.found) > MAX_FOUND:
        blocks.append(out.Styled(f"… and {len(receipt.found) - MAX_FOUND:,} more", "dim"))
    for label, style, sentences in (("remains", "dim", receipt.remains), ("remnant", "yellow", receipt.remnants)):
        for sentence in sentences:
            blocks += [out.Piped(label, sentence), out.Styled(f"· {sentence}", style)]
    at = out.json_value(receipt.at)
    blocks.append(out.Piped("dry run" if receipt.is_dry_run else "receipt", receipt.subject, at, receipt.hash))
    if not receipt.is_dry_run:
        blocks.append(out.Styled(f"Receipt {receipt.hash}, {at}", "green"))
    return out.Output(out.json_record(receipt), blocks)


def _count_erased(receipt: Receipt) -> Iterator[out.Block]:
    counted = ("Would be removed", "Would lose its words") if receipt.is_dry_run else ("Removed", "Lost its words")
    would = "would be " if receipt.is_dry_run else ""
    for done, counts in (("removed", receipt.removed), ("cleared", receipt.cleared)):
        yield from (out.Piped(f"{would}{done}", table, number) for table, number in counts.items())
    columns = (
        out.Column("Table", lambda name: name),
        out.Column(counted[0], receipt.removed.get, is_number=True),
        out.Column(counted[1], receipt.cleared.get, is_number=True),
    )
    tables = sorted({*receipt.removed, *receipt.cleared})
    yield out.Table(columns, tables, only="terminal") if tables else out.Styled("Nothing mentions it.", "dim")


FOUND_COLUMNS = (
    out.Column("Table", lambda each: each.table, is_wide=True),
    out.Column("Agent", lambda each: each.agent, is_wide=True),
    out.Column("Id", lambda each: each.id, "cyan"),
    out.Column("Says", lambda each: out.Styled(each.excerpt, "dim" if each.is_cleared else "")),
)
