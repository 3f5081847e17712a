"""Running the real program the way a shell does."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.cli.warm import Warm
from tests.waiting import PATIENT

SOURCE = Path(__file__).parents[2] / "src"
ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
BOXES = re.compile("[\u2500-\u257f]")
TIMEOUT = 100
AT_ONCE = 4


@dataclass(frozen=True)
class Ended:
    """How one run ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        assert self.out, self.err
        return json.loads(self.out)


@cache
def shared_warm(*modules: str) -> Warm:
    """A `wellkept` that does not start from nothing, for as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="wellkept-warm-"))
    warm = Warm(Program(folder), *modules)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(warm.close)
    return warm


def is_plain(variables: Mapping[str, str]) -> bool:
    """Return True if Python itself reads none of these variables."""
    return all(name.startswith(("WELLKEPT_", "OPENAI_", "_WELLKEPT_", "COMP_")) for name in variables)


class Program:
    """The program in a folder of its own, on a store of its own.

    It is `python -m wellkept` when it is only begun, and when variables are given that Python itself reads; any other
    run, also on a terminal, is a fork of a process that has loaded it already.
    """

    command: tuple[str, ...] = (sys.executable, "-m", "wellkept")

    def __init__(self, folder: Path, *modules: str) -> None:
        """`modules` are those that its runs need besides what most commands do."""
        self.folder = folder
        self.url = "sqlite:///notes.db"
        self._modules = modules

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("WELLKEPT_", "OPENAI_", "LC_", "LANG"))}
        ours = {"PYTHONPATH": str(SOURCE), "HOME": str(self.folder), "WELLKEPT_URL": self.url, "LC_ALL": "C.UTF-8"}
        return inherited | PATIENT | ours | {"XDG_DATA_HOME": str(self.folder / "share")} | more

    def start(self, *arguments: str | bytes, **more: str) -> subprocess.Popen[bytes]:
        """Begin a run whose streams are pipes."""
        pipe = subprocess.PIPE
        line, environment = [*self.command, *arguments], self.environment(**more)
        return subprocess.Popen(line, cwd=self.folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)

    def __call__(self, *arguments: str | bytes, given: str | bytes = b"", **more: str) -> Ended:
        """Run to the end, with `given` on standard input."""
        sent = given.encode() if isinstance(given, str) else given
        if is_plain(more):
            line, environment = [os.fsdecode(each) for each in arguments], self.environment(**more)
            warm = shared_warm(*self._modules)
            code, out, err = warm.run(line, folder=self.folder, environment=environment, given=sent)
        else:
            with self.start(*arguments, **more) as process:
                out, err = process.communicate(sent, timeout=TIMEOUT)
            code = process.returncode
        return Ended(code, out.decode(errors="replace"), err.decode(errors="replace"))

    def all(self, *runs: Sequence[str]) -> list[Ended]:
        """Several runs at the same time, in the order given."""
        shared_warm(*self._modules)  # before many ask for it
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(lambda arguments: self(*arguments), runs))

    def ok(self, *arguments: str, **options: Any) -> str:
        """Standard output of a run that must go well; on standard error it may only say why there is none."""
        ended = self(*arguments, **options)
        assert (ended.code, ended.err if ended.out else "") == (0, ""), ended
        return ended.out

    def on_terminal(self, width: int, *arguments: str, **more: str) -> Ended:
        """Run on a terminal that is `width` columns wide."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        command = (str(shared_warm(*self._modules).bin / "wellkept"),) if is_plain(more) else self.command
        line, environment = [*command, *arguments], self.environment(TERM="xterm-256color", **more)
        for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
            environment.pop(name, None)
        process = subprocess.Popen(line, cwd=self.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = _until_closed(ours)
        return Ended(process.wait(TIMEOUT), shown.decode().replace("\r\n", "\n"), "")

    def asked(self, question: str, answer: str, *arguments: str) -> Ended:
        """Run on a terminal, and type the answer to a question."""
        ours, theirs = pty.openpty()
        line, environment = [*self.command, *arguments], self.environment()
        process = subprocess.Popen(line, cwd=self.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        typed = f"{answer}\n".encode()
        shown = _until_closed(ours, when=question.encode(), typed=typed)
        return Ended(process.wait(TIMEOUT), shown.decode().replace("\r\n", "\n"), "")

    def python(self, code: str, *arguments: str) -> Ended:
        """Run `code`, which ends in calling the program itself."""
        line = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(line, cwd=self.folder, env=self.environment(), capture_output=True, timeout=TIMEOUT)
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def _until_closed(terminal: int, *, when: bytes = b"", typed: bytes = b"") -> bytes:
    """Read what is shown; type `typed` once `when` is there."""
    shown = b""
    try:
        while more := os.read(terminal, 65536):
            if when and when in shown + more and when not in shown:
                os.write(terminal, typed)
            shown += more
    except OSError:  # how Linux says that the other end was closed
        pass
    finally:
        os.close(terminal)
    return shown
