"""The real program without its start-up: a process that has loaded everything forks for each run.

Tests that run the program hundreds of times would mostly wait for Python's imports. `Warm` puts a `wellkept` on the
path that hands its arguments, folder, environment and open streams to a process that is waiting; a fork of that one is
the program from the first line of `main` on, and ends with its own exit code.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from wellkept.cli import app, main

if TYPE_CHECKING:
    from tests.cli.program import Program

ROOT = Path(__file__).parents[2]
LOOKS_UP_EVERY = 5.0
FIRST_RUNS = (["remember", "Prefers tabs"], ["recall", "tabs?", "--json"])
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(asked)
    sys.exit(int(server.recv(8) or b"255"))
"""
TIMEOUT = 100


class Warm:
    """A waiting process, and the folder with the `wellkept` that asks it."""

    def __init__(self, program: Program, *modules: str) -> None:
        """`modules` are loaded besides what most commands need."""
        self.bin = program.folder / "bin"
        self.bin.mkdir()
        self._address = address = str(program.folder / "warm")
        client = self.bin / "wellkept"
        client.write_text(CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)
        environment = program.environment(PYTHONPATH=f"{ROOT / 'src'}:{ROOT}", OPENBLAS_NUM_THREADS="1")
        line = [sys.executable, "-m", "tests.cli.warm", address, *modules]
        self._process = subprocess.Popen(line, cwd=program.folder, env=environment, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert any(line == b"ready\n" for line in self._process.stdout)

    def run(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], given: bytes
    ) -> tuple[int, bytes, bytes]:
        """Run the program with pipes for its streams; returns its exit code and what it wrote to them."""
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = pipes
        asked = json.dumps([arguments, str(folder), dict(environment)]).encode()
        with ThreadPoolExecutor(3) as threads, socket.socket(socket.AF_UNIX) as server:
            server.settimeout(TIMEOUT)
            server.connect(self._address)
            streams = [theirs_in, theirs_out, theirs_err]
            socket.send_fds(server, [len(asked).to_bytes(4, "big")], streams)
            for stream in streams:
                os.close(stream)
            writing = threads.submit(_write, ours_in, given)
            out, err = threads.submit(_read, ours_out), threads.submit(_read, ours_err)
            server.sendall(asked)
            code = int(server.recv(8) or b"255")
            writing.result()
            return code % 256, out.result(), err.result()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _write(pipe: int, given: bytes) -> None:
    with suppress(BrokenPipeError), open(pipe, "wb") as stream:
        stream.write(given)


def _read(pipe: int) -> bytes:
    with open(pipe, "rb") as stream:
        return stream.read()


def _serve(address: str) -> None:
    """Answer for ever; returns only in a process that is to be the program."""
    for module in sys.argv[2:]:
        import_module(module)
    for arguments in FIRST_RUNS:  # on a store of their own; they load what a command needs
        app.program()([*arguments, "--url", ":memory:"], standalone_mode=False)
    # To fork costs more than most commands do, so nobody stands between this process and the program.
    pipe, wakes = os.pipe()
    for end in (pipe, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        parent = os.getppid()
        gc.collect()
        # Else the collector of every fork would write to, and so copy, all that is loaded.
        gc.freeze()
        print("ready", flush=True)
        while os.getppid() == parent:  # else whoever runs the tests was killed, and nobody will ask again
            ready, _, _ = select.select([listening.fileno(), pipe], [], [], LOOKS_UP_EVERY)
            if pipe in ready:
                os.read(pipe, 4096)
                _tell_ends(running)
            if listening.fileno() in ready:
                asking, _ = listening.accept()
                request, streams = _receive(asking)
                program = os.fork()
                if not program:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for opened in (listening, asking, *running.values()):
                        opened.close()
                    for end in (pipe, wakes):
                        os.close(end)
                    return _become(request, streams)
                running[program] = asking
                for stream in streams:
                    os.close(stream)
    sys.exit()


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Answer those whose programs have ended."""
    while running:
        program, status = os.waitpid(-1, os.WNOHANG)
        if not program:
            return
        with running.pop(program) as asking, suppress(BrokenPipeError):
            asking.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _receive(asking: socket.socket) -> tuple[bytes, list[int]]:
    head, streams, _, _ = socket.recv_fds(asking, 4, 3)
    length, given = int.from_bytes(head, "big"), b""
    while len(given) < length:
        given += asking.recv(length - len(given))
    return given, streams


def _become(request: bytes, streams: list[int]) -> None:
    arguments, folder, environment = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments


def _leave(code: object) -> None:
    """Exit as Python does, but without taking apart what is loaded, which takes longer than most commands run."""
    if code is None or isinstance(code, int):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError, AttributeError):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code or 0)


if __name__ == "__main__":
    _serve(sys.argv[1])
    try:
        main()
    except SystemExit as ended:
        _leave(ended.code)
        raise
