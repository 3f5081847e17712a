"""A process that runs the commands it is told, one after the other: each is the whole program, without its start.

    python -m tests.corpus.running FORM IN OUT

IN and OUT are descriptors over which it is asked and answers, in lines of JSON. On a "terminal" both output streams of
a command are one; its input is never a terminal, so nothing is asked back.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import sys
import tempfile
import termios
import threading
from typing import Any

from wellkept.cli import main

WIDTH = 100
END = b"\x00end\x00"


class Terminal:
    """A terminal that somebody reads, so that what is written to it never waits."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        self._shown = b""
        self._has_ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            more = os.read(self._ours, 65536)
            self._shown += more
            if self._shown.endswith(END):
                self._has_ended.set()

    def take(self) -> str:
        """Return what was written since the last time."""
        os.write(self.theirs, END)
        self._has_ended.wait()
        shown, self._shown = self._shown.removesuffix(END), b""
        self._has_ended.clear()
        return shown.decode(errors="replace").replace("\r\n", "\n")


def run(arguments: list[str], given: str, terminal: Terminal | None) -> dict[str, Any]:
    """Run one command, and return its exit code and what it wrote."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(given.encode())
        stdin.seek(0)
        targets = (stdin.fileno(), *((terminal.theirs,) * 2 if terminal else (out.fileno(), err.fileno())))
        for number, target in enumerate(targets):
            os.dup2(target, number)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding="utf-8", line_buffering=True)
            for number in (1, 2)
        )
        sys.argv = ["wellkept", *arguments]
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        if terminal is not None:
            return {"code": code, "out": terminal.take(), "err": ""}
        out.seek(0)
        err.seek(0)
        return {"code": code, "out": out.read().decode(errors="replace"), "err": err.read().decode(errors="replace")}


def serve(form: str, asked: int, answers: int) -> None:
    terminal = Terminal() if form == "terminal" else None
    with os.fdopen(asked) as lines, os.fdopen(answers, "w") as told:
        for line in lines:
            arguments, given = json.loads(line)
            told.write(json.dumps(run(arguments, given, terminal)) + "\n")
            told.flush()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
