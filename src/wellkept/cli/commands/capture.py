"""Capture: keep the long output of a command or a pipe out of a prompt."""

from __future__ import annotations

import shlex
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Annotated

import click

from wellkept.cli.output import Output
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Command, Run
from wellkept.cli.text import safe
from wellkept.errors import Invalid, WellkeptError
from wellkept.model import Captured, Json

STDOUT, STDERR = 1, 2
PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedOutput:
    """An output, and the line that replaces it in a prompt if it is long."""

    captured: Captured
    file: IO[bytes]  # the whole output
    source: str
    status: str
    exit_code: int | None = None  # None: it came through a pipe
    duration: float | None = None  # seconds
    is_shown: bool = False  # it was printed live


def capture(
    run: Run,
    command: Annotated[
        list[str] | None, Argument(help="The command and its arguments, after --; without one, read standard input.")
    ] = None,
    source: Annotated[str, Option(help="The source of the output; by default the command.")] = "",
    status: Annotated[str, Option(help="The outcome of the command, if its output comes through a pipe.")] = "",
    type: Annotated[str, Option(help="A short word for what it is.")] = "command_output",
    session: Annotated[str | None, Option(help="The conversation it belongs to.")] = None,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="Print only what goes into the prompt, on standard output.")
    ] = False,
) -> None:
    """Run a command and store its output if it is too long for a prompt. You see the output as it comes; the line that
    stands for it follows on standard error. The exit code is the command's. Without a command: read standard input, and
    print it if it is short, else the line.
    """
    if command and status:
        raise click.BadParameter("--status is for output from a pipe; a command has its own exit code.")
    # Fail before the command has done anything if the store cannot be opened.
    run.memory  # noqa: B018
    with tempfile.TemporaryFile(prefix="wellkept-") as file:
        if command:
            _run(run, command, file, source=source or shlex.join(command), type=type, session=session, quiet=quiet)
            return
        _read_input(file)
        captured = run.memory.capture_output(file, source=source, status=status, type=type, session_id=session)
        _show(run, CapturedOutput(captured=captured, file=file, source=source, status=status))


def _run(
    run: Run, command: list[str], file: IO[bytes], *, source: str, type: str, session: str | None, quiet: bool
) -> None:
    # Other commands do not need what this module imports.
    process = import_module("wellkept.cli.process")
    out = None if quiet else STDERR if run.printer.is_json else STDOUT
    ended = process.run_command(command, file, out=out, err=None if quiet else STDERR)
    if ended.problem:
        click.secho(safe(f"{ended.problem}."), fg="red", err=True)
        raise click.exceptions.Exit(ended.code or REFUSED)
    try:
        captured = run.memory.capture_output(
            file,
            source=source,
            status=ended.status,
            type=type,
            session_id=session,
            duration=round(ended.duration, 3),
            metadata={"exit_code": ended.code},
        )
    except WellkeptError as error:
        if not ended.code:
            raise
        click.secho(safe(str(error)), fg="red", err=True)
        raise click.exceptions.Exit(ended.code) from error
    output = CapturedOutput(
        captured=captured,
        file=file,
        source=source,
        status=ended.status,
        exit_code=ended.code,
        duration=round(ended.duration, 3),
        is_shown=not quiet,
    )
    _show(run, output)
    raise click.exceptions.Exit(ended.code)


def _read_input(file: IO[bytes]) -> None:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.BadParameter("Give a command after --, or pipe its output in.")
    try:
        while piece := sys.stdin.buffer.read(PIECE_BYTES):
            file.write(piece)
    except OSError as error:
        raise Invalid(f"Standard input could not be stored: {error.strerror}.") from error


COMMANDS = (Command(run=capture, example="wellkept capture -- npm install"),)


def _show(run: Run, output: CapturedOutput) -> None:
    if run.printer.is_json:
        run.show(Output(json=_json(output)))
    elif output.captured.is_captured:
        # On standard error after the live output, so that the next program in a pipe reads that output alone.
        print(safe(output.captured.text), file=sys.stderr if output.is_shown else sys.stdout)
    elif not output.is_shown:
        sys.stdout.flush()
        output.file.seek(0)
        sys.stdout.buffer.write(output.file.read())


def _json(output: CapturedOutput) -> Json:
    captured = output.captured
    return {
        "text": captured.text,
        "captured": captured.is_captured,
        "memory_key": captured.memory_key,
        "source": output.source,
        "status": output.status,
        "exit_code": output.exit_code,
        "duration": output.duration,
    }
