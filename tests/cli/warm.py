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
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        listening.settimeout(LOOKS_UP_EVERY)
        parent = os.getppid()
        gc.collect()
        # Else the collector of every fork would write to, and so copy, all that is loaded.
        gc.freeze()
        print("ready", flush=True)
        while os.getppid() == parent:  # else whoever runs the tests was killed, and nobody will ask again
            try:
                asking, _ = listening.accept()
            except TimeoutError:
                continue
            with asking:
                if os.fork() == 0:
                    listening.close()
                    return _handle(asking)
            with suppress(ChildProcessError):  # there is none
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    sys.exit()


def _handle(asking: socket.socket) -> None:
    head, streams, _, _ = socket.recv_fds(asking, 4, 3)
    length, given = int.from_bytes(head, "big"), b""
    while len(given) < length:
        given += asking.recv(length - len(given))
    program = os.fork()
    if program:
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(program, 0)
        asking.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    asking.close()
    arguments, folder, environment = json.loads(given)
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
