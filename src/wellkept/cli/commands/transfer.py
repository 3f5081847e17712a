"""Transfer: exports, imports, backups of the whole store, and restoring."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.options import DryRun
from wellkept.cli.output import Column, Output, list_records
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Run
from wellkept.cli.text import json_record, one_line, plain_time
from wellkept.errors import Invalid
from wellkept.model import BackupReport, ImportReport

STREAM = Path("-")


def export(
    run: Run,
    path: Annotated[
        Path, Argument(metavar="PATH", help="The file; .gz or .zst compresses it, - is standard output.")
    ] = STREAM,
    user: Annotated[str | None, Option(help="Only the records of this end user.")] = None,
) -> None:
    """Write all data of the tenant, except keys, to a file that any store can import.

    Example: wellkept data export acme.jsonl.zst --tenant acme"""
    if path != STREAM:
        with run.progress("Exporting") as bar:
            exported = run.tenant.data.export(path, progress=bar.report, user=user)
        counts = [*exported.counts.items()]
        columns = (Column("What", lambda row: row[0], "cyan"), Column("Rows", lambda row: row[1], is_number=True))
        listed = list_records(columns, counts, notes=map(one_line, exported.problems))
        json = json_record(exported) | {"path": str(path)}
        run.show(Output(json=json, lines=listed.lines, blocks=listed.blocks))
        return
    if run.printer.is_json:
        raise click.BadParameter("--json reports on a file: name one, or omit --json.")
    if sys.stdout is None:
        raise Invalid("There is no standard output to write to.")
    run.tenant.data.export(sys.stdout.buffer, user=user)


def import_(
    run: Run,
    path: Annotated[Path, Argument(metavar="PATH", help="The file; - reads standard input.")],
    from_: Annotated[
        str | None, Option("--from", metavar="FORMAT", help="The program that wrote it, if it cannot be detected.")
    ] = None,
    merge: Annotated[
        bool, Option("--merge", help="Where ids conflict, keep what is in the store and skip the other.")
    ] = False,
    remember: Annotated[
        bool, Option("--remember", help="Also remember the messages of imported conversations as episodes.")
    ] = False,
    trusted: Annotated[
        bool, Option("--trusted", help="Believe an export that is not signed; its core memories need no review.")
    ] = False,
    with_erased: Annotated[bool, Option("--with-erased", help="Bring back what was erased here.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Import an export, or the memories of another program. Existing records do not change.

    Memories without an agent go to --agent.

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


def backup(
    run: Run,
    path: Annotated[Path, Argument(metavar="FILE", help="The backup to write or to check.")],
    verify: Annotated[bool, Option("--verify", help="Check an existing backup instead of making one.")] = False,
) -> None:
    """Write the whole store, all tenants, to one compressed file while it stays in use.

    Example: wellkept data backup monday.tar.zst"""
    with run.progress("Checking" if verify else "Backing up") as bar:
        check_or_write = run.library.verify_backup if verify else run.store.backup
        report = check_or_write(path, progress=bar.report)
    run.show(_render_backup(report, path))


def restore(
    run: Run, path: Annotated[Path, Argument(metavar="FILE", help="A file that wellkept data backup wrote.")]
) -> None:
    """Restore a backup, to the store that --url names, which must not exist yet.

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


BACKUP_COLUMNS = (
    Column("Made at", lambda report: report.created_at, "cyan"),
    Column("Texts", lambda report: report.texts, only="terminal", is_number=True),
    Column("", lambda report: f"{report.texts} texts", only="pipe"),
    Column("Bytes", lambda report: report.bytes, only="terminal", is_number=True),
    Column("", lambda report: f"{report.bytes} bytes", only="pipe"),
)


def _render_backup(report: BackupReport, path: Path) -> Output:
    listed = list_records(BACKUP_COLUMNS, [report], notes=map(one_line, report.problems))
    json = json_record(report) | {"path": str(path), "created_at": plain_time(report.created_at)}
    return Output(json=json, lines=listed.lines, blocks=listed.blocks)


def _render_imported(imported: ImportReport) -> Output:
    added = "would be added" if imported.is_dry_run else "added"
    columns = (
        Column("What", lambda table: table, "cyan"),
        Column(added.capitalize(), lambda table: imported.added.get(table, 0), only="terminal", is_number=True),
        Column("", lambda table: f"{imported.added.get(table, 0)} {added}", only="pipe"),
        Column("There already", lambda table: imported.present.get(table, 0), "dim", "terminal", is_number=True),
        Column("", lambda table: f"{imported.present.get(table, 0)} there already", only="pipe"),
    )
    notes: list[str] = []
    for items, total in ((imported.refused, imported.refused_count), (imported.flagged, imported.flagged_count)):
        notes += [f"{one_line(each.place)}: {one_line(each.reason)}" for each in items]
        if total > len(items):
            notes.append(f"and {total - len(items):,} more")
    notes += map(one_line, imported.problems)
    tables = [*dict.fromkeys([*imported.added, *imported.present])]
    listed = list_records(columns, tables, if_empty="Nothing came in.", notes=notes)
    return Output(json=json_record(imported), lines=listed.lines, blocks=listed.blocks)
