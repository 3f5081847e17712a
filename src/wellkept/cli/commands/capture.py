"""Capture: keep the long output of a command or a pipe out of a prompt.

A command runs as if started by hand: separate live streams, forwarded signals, its own exit code. Its output is also
written to a file, so that a long output is never held in memory.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Thread
from types import FrameType
from typing import IO, Annotated

import click

from wellkept.cli.output import Output
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Run
from wellkept.cli.text import safe
from wellkept.errors import Invalid, WellkeptError
from wellkept.model import Captured, Json

STDOUT, STDERR = 1, 2
PIECE_BYTES = 64 * 1024
NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""Exit codes of shells: cannot be executed, not found, killed by a signal (plus its number)."""

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TERMINAL = "/dev/tty"


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

    Example: wellkept memory capture -- npm install"""
    if command and status:
        raise click.BadParameter("--status is for output from a pipe; a command has its own exit code.")
    # Fail before the command has done anything if the store cannot be opened.
    run.memory  # noqa: B018
    with tempfile.TemporaryFile(prefix="wellkept-") as file:
        if command:
            _run(run, command, file, source=source or shlex.join(command), type=type, session=session, quiet=quiet)
            return
        _read_input(file)
        captured = run.memory.details.capture_output(file, source=source, status=status, type=type, session_id=session)
        _show(run, captured, file, {"source": source, "status": status, "exit_code": None, "duration": None})


def _run(
    run: Run, command: list[str], file: IO[bytes], *, source: str, type: str, session: str | None, quiet: bool
) -> None:
    out = None if quiet else STDERR if run.printer.is_json else STDOUT
    ended = run_command(command, file, out=out, err=None if quiet else STDERR)
    if ended.problem:
        click.secho(safe(f"{ended.problem}."), fg="red", err=True)
        raise click.exceptions.Exit(ended.code or REFUSED)
    try:
        captured = run.memory.details.capture_output(
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
    about = {"source": source, "status": ended.status, "exit_code": ended.code, "duration": round(ended.duration, 3)}
    _show(run, captured, file, about, is_shown=not quiet)
    raise click.exceptions.Exit(ended.code)


def _read_input(file: IO[bytes]) -> None:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.BadParameter("Give a command after --, or pipe its output in.")
    try:
        while piece := sys.stdin.buffer.read(PIECE_BYTES):
            file.write(piece)
    except OSError as error:
        raise Invalid(f"Standard input could not be stored: {error.strerror}.") from error


def _show(run: Run, captured: Captured, file: IO[bytes], about: Json, *, is_shown: bool = False) -> None:
    """Print what goes into the prompt. `file` holds the whole output, which `is_shown` if it was printed live."""
    if run.printer.is_json:
        answer = {"text": captured.text, "captured": captured.is_captured, "memory_key": captured.memory_key}
        run.show(Output(json=answer | about))
    elif captured.is_captured:
        # On standard error after the live output, so that the next program in a pipe reads that output alone.
        print(safe(captured.text), file=sys.stderr if is_shown else sys.stdout)
    elif not is_shown:
        sys.stdout.flush()
        file.seek(0)
        sys.stdout.buffer.write(file.read())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """Exit code and duration of a process."""

    code: int  # as a shell reports it
    duration: float  # seconds
    problem: str = ""  # why it did not run, or why its output is incomplete

    @property
    def status(self) -> str:
        if self.code > SIGNALLED:
            with suppress(ValueError):
                return f"ended by {signal.Signals(self.code - SIGNALLED).name}"
        return "success" if self.code == 0 else f"exit code {self.code}"


def run_command(command: Sequence[str], file: IO[bytes], *, out: int | None, err: int | None) -> ProcessResult:
    """Run `command`, write its output to `file` and copy it live to the descriptors, unless they are None."""
    started = time.monotonic()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        reason = getattr(error, "strerror", None) or str(error)
        return ProcessResult(code=code, duration=0.0, problem=f"{command[0]} cannot be run: {reason}")
    with process, _forward_signals(process):
        recorder = _Recorder(file)
        pumps = [Thread(target=recorder.pump, args=pair) for pair in ((process.stdout, out), (process.stderr, err))]
        for pump in pumps:
            pump.start()
        code = process.wait()
        for pump in pumps:
            pump.join()
        recorder.flush()
    return ProcessResult(
        code=code if code >= 0 else SIGNALLED - code, duration=time.monotonic() - started, problem=recorder.problem
    )


class _Recorder:
    """Copies streams to a file and to a descriptor."""

    def __init__(self, file: IO[bytes]) -> None:
        self.problem = ""
        self._file = file
        self._lock = Lock()

    def pump(self, stream: IO[bytes], target: int | None) -> None:
        """Copy the stream until it ends. Keep reading when a copy fails, so that the process does not hang.

        The descriptor gets each piece at once. The file gets whole lines, so that the two streams never mix within
        a line."""
        pending = b""  # an unfinished line
        while piece := os.read(stream.fileno(), PIECE_BYTES):
            pending += piece
            whole = pending.rfind(b"\n") + 1 or (len(pending) if len(pending) > PIECE_BYTES else 0)
            self._write(pending[:whole])
            pending = pending[whole:]
            if target is not None:
                target = target if _copy(piece, target) else None
        self._write(pending)

    def flush(self) -> None:
        """Flush the file."""
        with self._lock, self._note_failure():
            self._file.flush()

    def _write(self, piece: bytes) -> None:
        with self._lock, self._note_failure():
            if not self.problem:
                self._file.write(piece)

    @contextmanager
    def _note_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.problem = f"The output was not kept: {error.strerror}"


def _copy(piece: bytes, descriptor: int) -> bool:
    """Write the piece; return False if the reader closed the pipe."""
    try:
        while piece:
            piece = piece[os.write(descriptor, piece) :]
    except BrokenPipeError:
        return False
    return True


@contextmanager
def _forward_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals to the process, which decides how to react."""

    def forward(number: int, _: FrameType | None) -> None:
        # The terminal sends Ctrl-C to the whole foreground group, so the process already has it.
        if number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    try:
        terminal = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
