"""Details: store big texts that prompts only refer to, read them, and capture the long output of commands.

A captured command runs as if started by hand: separate live streams, forwarded signals, its own exit code. Its output
is also written to a file, so that a long output is never held in memory.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from types import FrameType
from typing import IO, Annotated, Any, TypedDict, Unpack

import click

from wellkept.cli import output as out
from wellkept.cli.options import STANDARD_INPUT, complete_detail
from wellkept.cli.run import REFUSED, Run
from wellkept.details.rules_keys import reference
from wellkept.errors import Invalid, WellkeptError
from wellkept.model import Captured, Detail, Json

STDOUT, STDERR = 1, 2
PIECE_BYTES = 64 * 1024
NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""Exit codes of shells: cannot be executed, not found, killed by a signal (plus its number)."""

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TERMINAL = "/dev/tty"

Key = Annotated[str, complete_detail]


def store(run: Run, file: str, description: str = "", type: str = "file_content", session: str | None = None) -> None:
    """Store a big text and print the reference that replaces it in prompts.

    file: A file of text; - reads standard input.
    --description: One line for the reference.
    --type: Such as command_output or api_response.
    --session: The conversation it belongs to.

    Example: wellkept memory details store build.log --description 'the nightly build'"""
    if file == STANDARD_INPUT and sys.stdin is None:
        raise Invalid("There is no standard input to read.")
    is_piped = file == STANDARD_INPUT
    stored = run.memory.details.store(
        sys.stdin.buffer if is_piped else Path(file),
        description=description or ("" if is_piped else Path(file).name),
        type=type,
        session_id=session,
        metadata={} if is_piped else {"source": file},
    )
    line = out.one_line(reference(stored.key, stored.description))
    summary = out.Indented(out.Styled(out.one_line(stored.summary), "dim"), (0, 2))
    run.show(out.Output(_json(stored), [out.Piped(line), [out.tick(True), line], summary]))


def list_details(run: Run, query: str = "", session: str | None = None, limit: int = 20) -> None:
    """List the big texts an agent has stored.

    query: Words to search for, best match first; without any, list the newest.
    --session: The conversation it belongs to.

    Example: wellkept memory details list build"""
    found = run.memory.details.search(query, session_id=session, limit=limit)
    run.show(out.list_records(COLUMNS, found, json=_json, if_empty="There is nothing here."))


class PartOptions(TypedDict):
    """Options that choose a part of a text.

    --limit: Maximum number of characters.
    --lines: Such as 120-180, 120 or 120-.
    --head: The first lines, this many.
    --tail: The last lines, this many.
    --grep: Lines that contain this text, or match /this/.
    --json-path: Values of a JSON text, such as $.items[0]."""

    limit: int | None
    lines: str | None
    head: int | None
    tail: int | None
    grep: str | None
    json_path: str | None


def show(run: Run, key: Key, offset: int = 0, context: int = 2, **part: Unpack[PartOptions]) -> None:
    """Show a part of a big text; standard error says how much remains.

    key KEY: The detail's key, such as npm-install-x7k2m9qp.
    --offset: The first character to show.
    --context: Lines around each match.

    Example: wellkept memory details show build-log-x7k2m9qp --grep error"""
    page = run.memory.details.read(key, offset=offset, context=context, **part)
    # A file or another program gets it unchanged.
    text: list[out.Block] = [out.Verbatim(page.content.removesuffix("\n"))] if page.content else []
    run.show(out.Output(out.json_record(page), [*text, out.Remark(out.one_line(page.remaining))]))


def hide(run: Run, key: Key, undo: bool = False) -> None:
    """Hide a big text, so that it cannot be found or read.

    key KEY: The detail's key, such as npm-install-x7k2m9qp.
    --undo: Show it again.

    Example: wellkept memory details hide build-log-x7k2m9qp"""
    detail = run.memory.details.hide(key, is_hidden=not undo)
    run.show(out.confirm("Shown again" if undo else "Hidden", detail.key, "memory_key"))


def delete(run: Run, key: Key) -> None:
    """Delete a big text for good.

    key KEY: The detail's key, such as npm-install-x7k2m9qp.

    Example: wellkept memory details delete build-log-x7k2m9qp"""
    run.memory.details.delete(key)
    run.show(out.confirm("Deleted", key, "memory_key"))


COLUMNS = (
    out.Column("", lambda each: each.key, only="pipe"),
    out.Column("Type", lambda each: each.type, is_wide=True),
    out.Column("", lambda each: each.created_at, only="pipe"),
    out.Column("Lines", lambda each: each.lines, is_wide=True, is_number=True, unit=" lines"),
    out.Column("", lambda each: each.summary, only="pipe"),
    out.Column("Key, and what it is", lambda each: _describe(each), only="terminal"),
)


def _describe(detail: Detail) -> out.Styled:
    more = ((f"\n{out.one_line(detail.description)}\n", "default"), (out.one_line(detail.summary), "dim default"))
    return out.Styled(detail.key, "cyan", more)


def _json(detail: Detail) -> Json:
    return out.json_record(detail) | {"reference": reference(detail.key, detail.description)}


def capture(
    run: Run,
    command: list[str] | None = None,
    source: str = "",
    status: str = "",
    type: str = "command_output",
    session: str | None = None,
    quiet: bool = False,
) -> None:
    """Run a command and store its output if it is too long for a prompt. You see the output as it comes; the line that
    stands for it follows on standard error. The exit code is the command's. Without a command: read standard input, and
    print it if it is short, else the line.

    command: The command and its arguments, after --; without one, read standard input.
    --source: The source of the output; by default the command.
    --status: The outcome of the command, if its output comes through a pipe.
    --type: A short word for what it is.
    --session: The conversation it belongs to.
    --quiet, -q: Print only what goes into the prompt, on standard output.

    Example: wellkept memory capture -- npm install"""
    if command and status:
        raise click.BadParameter("--status is for output from a pipe; a command has its own exit code.")
    # Fail before the command has done anything if the store cannot be opened.
    capture_output = run.memory.details.capture_output
    about: dict[str, Any] = {"source": source, "status": status}
    ended = ProcessResult(code=0, duration=0.0)
    with tempfile.TemporaryFile(prefix="wellkept-") as file:
        if command:
            shown = None if quiet else STDERR if run.printer.is_json else STDOUT
            ended = run_command(command, file, out=shown, err=None if quiet else STDERR)
            if ended.problem:
                click.secho(out.safe(f"{ended.problem}."), fg="red", err=True)
                raise click.exceptions.Exit(ended.code or REFUSED)
            about = {"source": source or shlex.join(command), "status": ended.status}
            more: dict[str, Any] = {"duration": round(ended.duration, 3), "metadata": {"exit_code": ended.code}}
        else:
            _read_input(file)
            more = {}
        try:
            captured = capture_output(file, **about, **more, type=type, session_id=session)
        except WellkeptError as error:
            if not ended.code:
                raise
            click.secho(out.safe(str(error)), fg="red", err=True)
            raise click.exceptions.Exit(ended.code) from error
        about |= {"exit_code": ended.code if command else None, "duration": more.get("duration")}
        _show(run, captured, file, about, is_shown=bool(command) and not quiet)
    if command:
        raise click.exceptions.Exit(ended.code)


def _read_input(file: IO[bytes]) -> None:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.BadParameter("Give a command after --, or pipe its output in.")
    try:
        shutil.copyfileobj(sys.stdin.buffer, file, PIECE_BYTES)
    except OSError as error:
        raise Invalid(f"Standard input could not be stored: {error.strerror}.") from error


def _show(run: Run, captured: Captured, file: IO[bytes], about: Json, *, is_shown: bool) -> None:
    """Print what goes into the prompt. `file` holds the whole output, which `is_shown` if it was printed live."""
    if run.printer.is_json:
        answer = {"text": captured.text, "captured": captured.is_captured, "memory_key": captured.memory_key}
        run.show(out.Output(answer | about))
    elif captured.is_captured:
        # On standard error after the live output, so that the next program in a pipe reads that output alone.
        print(out.safe(captured.text), file=sys.stderr if is_shown else sys.stdout)
    elif not is_shown:
        sys.stdout.flush()
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)


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
