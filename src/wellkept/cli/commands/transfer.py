"""Transfer: exports, imports, backups of the whole store, and restoring."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Unpack, cast

import click

from wellkept.cli.commands.memories import read_states, render_memories
from wellkept.cli.options import FilterOptions, OfKind, name_options
from wellkept.cli.output import Column, Output, OutputNote, Styled
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Command, Run
from wellkept.cli.text import local_time, one_line, plain_time
from wellkept.errors import Invalid
from wellkept.language.names import memory_seq
from wellkept.model import BackupReport, ExportReport, ImportReport, StateName

STREAM = Path("-")


def export(
    run: Run,
    path: Annotated[
        Path, Argument(metavar="PATH", help="The file; .gz or .zst compresses it, - is standard output.")
    ] = STREAM,
    user: Annotated[str | None, Option(help="Only the records of this end user.")] = None,
) -> None:
    """Write all data of the tenant, except keys, to a file that any store can import."""
    if path != STREAM:
        with run.progress("Exporting") as bar:
            exported = run.tenant.export(path, progress=bar.report, user=user)
        run.show(_render_exported(exported, path))
        return
    if run.printer.is_json:
        raise click.BadParameter("--json reports on a file: name one, or omit --json.")
    if sys.stdout is None:
        raise Invalid("There is no standard output to write to.")
    run.tenant.export(sys.stdout.buffer, user=user)


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
    dry_run: Annotated[bool, Option("--dry-run", help="Write nothing; show what would happen.")] = False,
) -> None:
    """Import an export, or the memories of another program. Existing records do not change.

    Memories without an agent go to --agent."""
    with _as_file(path) as file, run.progress("Importing") as bar:
        imported = run.tenant.import_(
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
    """Write the whole store, all tenants, to one compressed file while it stays in use."""
    with run.progress("Checking" if verify else "Backing up") as bar:
        check_or_write = run.library.verify_backup if verify else run.store.backup
        report = check_or_write(path, progress=bar.report)
    run.show(_render_backup(report, path))


def restore(
    run: Run,
    what: Annotated[
        list[str] | None, Argument(metavar="ID… | FILE", help="Ids of memories, or a file that backup wrote.")
    ] = None,
    state: Annotated[str | None, Option(help="All memories in this state: archived or expired.")] = None,
    kind: OfKind = None,
    **filters: Unpack[FilterOptions],
) -> None:
    """Make archived or expired memories live again, or restore a backup.

    Ids look like m-7. A backup goes to the store that --url names, which must not exist yet."""
    named, chosen = what or [], name_options(filters)
    is_filtered = bool(state or kind or chosen)
    if named and not is_filtered and not any(map(memory_seq, named)):
        if len(named) > 1:
            raise click.BadParameter("Name one backup file, or ids of memories such as m-7.")
        path = Path(named[0])
        with run.progress("Restoring") as bar:
            report = run.library.restore(path, to=run.settings.store_url, progress=bar.report)
        run.show(_render_backup(report, path))
        return
    # The library refuses a state that is none.
    restored = run.memory.restore(named or None, state=cast(StateName | None, state), kind=kind, **chosen)
    run.show(render_memories(read_states(run, restored), if_empty="There was nothing to restore."))


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


COMMANDS = (
    # Here, --user limits the rows.
    Command(run=export, example="wellkept export acme.jsonl.zst --tenant acme", replaces=("user",)),
    Command(run=import_, alias="import", example="wellkept import acme.jsonl.zst --tenant acme --dry-run"),
    Command(run=backup, example="wellkept backup monday.tar.zst"),
    Command(run=restore, example="wellkept restore m-7 m-8", listed_by="list --state archived"),
)


def _render_backup(report: BackupReport, path: Path) -> Output:
    problems = [one_line(each) for each in report.problems]
    document = asdict(report) | {"path": str(path), "created_at": plain_time(report.created_at)}
    return Output(
        json=document | {"problems": list(report.problems)},
        lines=[
            f"{plain_time(report.created_at)}\t{report.texts} texts\t{report.bytes} bytes",
            *map(OutputNote, problems),
        ],
        columns=(Column("Made at", "cyan"), Column("Texts", number=True), Column("Bytes", number=True)),
        rows=[(local_time(report.created_at), f"{report.texts:,}", f"{report.bytes:,}")],
        blocks=[Styled(f" {one_line(str(path))}", "dim"), *(Styled(each, "red") for each in problems)],
    )


def _render_exported(exported: ExportReport, path: Path) -> Output:
    problems = [one_line(each) for each in exported.problems]
    return Output(
        json=asdict(exported) | {"path": str(path), "problems": list(exported.problems)},
        lines=[*(f"{table}\t{count}" for table, count in exported.counts.items()), *map(OutputNote, problems)],
        columns=(Column("What", "cyan"), Column("Rows", number=True)),
        rows=((table, f"{count:,}") for table, count in exported.counts.items()),
        blocks=[Styled(f" {one_line(str(path))}", "dim"), *(Styled(each, "red") for each in problems)],
    )


def _render_imported(imported: ImportReport) -> Output:
    counts = {
        table: (imported.added.get(table, 0), imported.present.get(table, 0))
        for table in dict.fromkeys([*imported.added, *imported.present])
    }
    document = asdict(imported)
    document["dry_run"] = document.pop("is_dry_run")
    added = "would be added" if imported.is_dry_run else "added"
    problems = _problem_lines(imported)
    return Output(
        json=document | {name: list(document[name]) for name in ("refused", "flagged", "problems")},
        lines=[
            *(f"{table}\t{new} {added}\t{old} there already" for table, (new, old) in counts.items()),
            *map(OutputNote, problems),
        ],
        columns=(
            Column("What", "cyan"),
            Column(added.capitalize(), number=True),
            Column("There already", "dim", number=True),
        ),
        rows=(
            (table, Styled(f"{new:,}", "green" if new else "dim"), f"{old:,}") for table, (new, old) in counts.items()
        ),
        if_empty="Nothing came in.",
        blocks=[Styled(line, "red") for line in problems],
    )


def _problem_lines(imported: ImportReport) -> list[str]:
    """Name what was refused or flagged, and other problems."""
    lines: list[str] = []
    for items, count in ((imported.refused, imported.refused_count), (imported.flagged, imported.flagged_count)):
        lines += [f"{one_line(each.place)}: {one_line(each.reason)}" for each in items]
        if count > len(items):
            lines.append(f"and {count - len(items):,} more")
    return [*lines, *map(one_line, imported.problems)]
