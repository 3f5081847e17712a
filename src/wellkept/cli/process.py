"""Running a child process transparently: separate live streams, forwarded signals, its own exit code.

Its output is also written to a file, so that a long output is never held in memory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Thread
from types import FrameType
from typing import IO

NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""Exit codes of shells: cannot be executed, not found, killed by a signal (plus its number)."""

PIECE_BYTES = 64 * 1024
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TERMINAL = "/dev/tty"


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
