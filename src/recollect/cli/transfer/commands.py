"""Moving memories: a whole tenant to a file and back, and what other programs remembered."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.progress import Bar
from recollect.cli.run import REFUSED, Command, Run
from recollect.errors import Invalid

STREAM = Path("-")


def export(
    run: Run,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The file; .gz or .zst compresses it, - is standard output.")
    ] = STREAM,
) -> None:
    """Write everything the tenant has, except keys, to one file that any store can import."""
    if path != STREAM:
        with Bar(run.view, "Exporting") as bar:
            exported = run.tenant.export(path, progress=bar.report)
        run.view.exported(exported, path)
        return
    if run.view.is_document:
        raise typer.BadParameter("--json tells about a file; name one, or leave --json out.")
    if sys.stdout is None:
        raise Invalid("There is no standard output to write to.")
    run.tenant.export(sys.stdout.buffer)


def import_(
    run: Run,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file; - reads standard input.", show_default=False)],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="Which program wrote it, if it does not show.", show_default=False
        ),
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Where ids clash, keep what is here and leave the other out.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would happen.")] = False,
) -> None:
    """Take in an export, or what another program remembered. What is there already stays as it is.

    Memories that name no agent become those of --agent."""
    with _named(path) as file, Bar(run.view, "Importing") as bar:
        imported = run.tenant.import_(file, format=from_, merge=merge, dry_run=dry_run, progress=bar.report)
    run.view.imported(imported)
    if imported.refused_count and not imported.added and not imported.present:
        raise typer.Exit(REFUSED)


@contextmanager
def _named(path: Path) -> Iterator[Path]:
    """A file that can be read twice: standard input is copied to one."""
    if path != STREAM:
        yield path
        return
    if sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    with tempfile.NamedTemporaryFile(prefix="recollect-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


COMMANDS = (
    Command(run=export, example="recollect export acme.jsonl.zst --tenant acme"),
    Command(run=import_, called="import", example="recollect import acme.jsonl.zst --tenant acme --dry-run"),
)
