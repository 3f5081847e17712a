"""Keeping long output out of a prompt, from the shell: of a command that is run, or of a pipe."""

from __future__ import annotations

import shlex
import sys
import tempfile
from importlib import import_module
from typing import IO, Annotated

import typer

from recollect.cli.run import REFUSED, Command, Run
from recollect.cli.view import CaptureShown, safe
from recollect.errors import Invalid, RecollectError

STDOUT, STDERR = 1, 2


def capture(
    run: Run,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The command and its arguments, behind --; none: standard input.", show_default=False),
    ] = None,
    source: Annotated[
        str, typer.Option(help="What the output is of; the command itself if not given.", show_default=False)
    ] = "",
    status: Annotated[str, typer.Option(help="How it ended, if it comes by a pipe.", show_default=False)] = "",
    type: Annotated[str, typer.Option(help="A short word for what it is.")] = "command_output",
    session: Annotated[str | None, typer.Option(help="The conversation it belongs to.", show_default=False)] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only what goes into the prompt, on standard output.")
    ] = False,
) -> None:
    """Run a command and store its output if it is too long for a prompt. You see the output as it comes; the line that
    stands for it follows on standard error. The exit code is the command's. Without a command: read standard input, and
    print it if it is short, else the line.
    """
    if command and status:
        raise typer.BadParameter("--status is for output that comes by a pipe; a command says itself how it ended.")
    run.memory  # noqa: B018  # a store that cannot be used is said now, before the command has done anything
    with tempfile.TemporaryFile(prefix="recollect-") as file:
        if command:
            _run(run, command, file, source=source or shlex.join(command), type=type, session=session, quiet=quiet)
            return
        _read_input(file)
        kept = run.memory.capture_output(file, source=source, status=status, type=type, session_id=session)
        run.view.captured(CaptureShown(captured=kept, file=file, source=source, status=status))


def _run(
    run: Run, command: list[str], file: IO[bytes], *, source: str, type: str, session: str | None, quiet: bool
) -> None:
    runner = import_module("recollect.cli.command")  # what it needs is not needed by other commands
    out = None if quiet else STDERR if run.view.is_document else STDOUT
    ended = runner.run_command(command, file, out=out, err=None if quiet else STDERR)
    if ended.problem:
        typer.secho(safe(f"{ended.problem}."), fg=typer.colors.RED, err=True)
        raise typer.Exit(ended.code or REFUSED)
    try:
        kept = run.memory.capture_output(
            file,
            source=source,
            status=ended.status,
            type=type,
            session_id=session,
            duration=round(ended.duration, 3),
            metadata={"exit_code": ended.code},
        )
    except RecollectError as error:
        if not ended.code:
            raise
        typer.secho(safe(str(error)), fg=typer.colors.RED, err=True)
        raise typer.Exit(ended.code) from error
    shown = CaptureShown(
        captured=kept,
        file=file,
        source=source,
        status=ended.status,
        exit_code=ended.code,
        duration=round(ended.duration, 3),
        is_seen=not quiet,
    )
    run.view.captured(shown)
    raise typer.Exit(ended.code)


def _read_input(file: IO[bytes]) -> None:
    if sys.stdin is None or sys.stdin.isatty():
        raise typer.BadParameter("Name a command behind --, or send its output by a pipe.")
    try:
        while piece := sys.stdin.buffer.read(64 * 1024):
            file.write(piece)
    except OSError as error:
        raise Invalid(f"Standard input was not kept: {error.strerror}.") from error


COMMANDS = (Command(run=capture, example="recollect capture -- npm install"),)
