"""Running a command as if nobody stood in between: its streams stay apart and live, its signals and exit code its own.

What it prints is also kept, in one file, so that a long output is never in memory.
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
"""What shells answer for a command that cannot be run, is not there, or was ended by a signal (plus its number)."""

PIECE_BYTES = 64 * 1024
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TERMINAL = "/dev/tty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int  # as a shell would say it
    duration: float
    problem: str = ""  # why it did not run, or why not all it printed was kept

    @property
    def status(self) -> str:
        if self.code > SIGNALLED:
            with suppress(ValueError):
                return f"ended by {signal.Signals(self.code - SIGNALLED).name}"
        return "success" if self.code == 0 else f"exit code {self.code}"


def run_command(command: Sequence[str], file: IO[bytes], *, out: int | None, err: int | None) -> Ended:
    """Run `command`, write all it prints to `file`, and pass it on to the descriptors as it comes; None: to nobody."""
    begun = time.monotonic()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        reason = getattr(error, "strerror", None) or str(error)
        return Ended(code=code, duration=0.0, problem=f"{command[0]} cannot be run: {reason}")
    with process, _forwarding(process):
        keeper = _Keeper(file)
        pumps = [Thread(target=keeper.pump, args=pair) for pair in ((process.stdout, out), (process.stderr, err))]
        for pump in pumps:
            pump.start()
        code = process.wait()
        for pump in pumps:
            pump.join()
        keeper.finish()
    return Ended(
        code=code if code >= 0 else SIGNALLED - code, duration=time.monotonic() - begun, problem=keeper.problem
    )


class _Keeper:
    """Copies streams to a file and to whoever looks on."""

    def __init__(self, file: IO[bytes]) -> None:
        self.problem = ""
        self._file = file
        self._lock = Lock()

    def pump(self, stream: IO[bytes], shown_on: int | None) -> None:
        """Until the stream ends. If it can no longer be kept or shown, it is still read: the command must not hang.

        Shown at once, but kept by whole lines, so that the other stream's never end up in the middle of one."""
        begun = b""  # the line that has no end yet
        while piece := os.read(stream.fileno(), PIECE_BYTES):
            begun += piece
            whole = begun.rfind(b"\n") + 1 or (len(begun) if len(begun) > PIECE_BYTES else 0)
            self._keep(begun[:whole])
            begun = begun[whole:]
            if shown_on is not None:
                shown_on = shown_on if _show(piece, shown_on) else None
        self._keep(begun)

    def finish(self) -> None:
        """What was kept is in the file now."""
        with self._lock, self._told():
            self._file.flush()

    def _keep(self, piece: bytes) -> None:
        with self._lock, self._told():
            if not self.problem:
                self._file.write(piece)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.problem = f"The output was not kept: {error.strerror}"


def _show(piece: bytes, descriptor: int) -> bool:
    """Whether somebody is still looking."""
    try:
        while piece:
            piece = piece[os.write(descriptor, piece) :]
    except BrokenPipeError:
        return False
    return True


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals meant for the command reach it, and it decides what becomes of them."""

    def forward(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not _is_in_foreground():  # the terminal sends Ctrl-C to the command itself, too
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
