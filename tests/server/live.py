"""A real server on a real socket: in a thread of this process, or as a process of its own."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx2
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute

from tests.waiting import PATIENT, eventually
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.server.app import create_app
from wellkept.server.http.routing import Router
from wellkept.server.run import listening, options

SOURCES = Path(__file__).parents[2] / "src"
PATIENCE = 240.0
"""Seconds after which nothing will come any more. No test measures by it: a busy machine may take its time."""

KEPT_ALIVE = {"timeout_keep_alive": 600}
"""The server hangs up on nobody who rests: a client could be about to ask again."""

LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)
"""A client uses no connection again that a server of its own process is about to hang up on (after 5 seconds)."""

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of our own servers: to load the real ones takes longer than most tests."""

PROGRAM = """
import sys
from wellkept.server.run import serve
from wellkept.settings import Settings
serve(Settings(url=sys.argv[1], port=0, workers=1), no_auth=sys.argv[2] == "True")
"""


@contextmanager
def serving(
    wellkept: Wellkept,
    change: Callable[[FastAPI], None] = lambda app: None,
    *,
    no_auth: bool = True,
    hosts: Sequence[str] = (),
) -> Iterator[str]:
    """The address of a server for `wellkept`, run in a thread; `change` may add routes to it."""
    app = create_app(wellkept, no_auth=no_auth, hosts=hosts)
    change(app)
    listener = listening("127.0.0.1", 0)
    spoken = options(proxies=wellkept.settings.trusted_proxies)
    server = uvicorn.Server(uvicorn.Config(app, **spoken | KEPT_ALIVE))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def add_route(app: FastAPI, path: str, endpoint: Callable[..., object], *, queue: str | None = None) -> None:
    """Add a route that takes an admin's key."""
    router = Router(route_class=APIRoute)
    router.get(path, scope=KeyScope.ADMIN, queue=queue)(endpoint)
    app.include_router(router.api)
    app.state.routes.add(router.routes[0])


@contextmanager
def client_of(address: str, key: str = "") -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx2.Client(
        base_url=address, timeout=PATIENCE, limits=LIMITS, trust_env=False, headers=headers, verify=NO_CERTIFICATES
    ) as client:
        yield client


class ServerProcess:
    """`serve` in a process of its own, which ends with the `with` block; what it printed first is in `said`."""

    def __init__(self, url: str, *, no_auth: bool = True, lines: int = 5, program: Sequence[str] = ()) -> None:
        self._lines = lines
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WELLKEPT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", *(program or (PROGRAM, url, str(no_auth)))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, **PATIENT, "PYTHONPATH": str(SOURCES)},
        )

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        self.said = [self._process.stdout.readline().rstrip() for _ in range(self._lines)]
        if not all(self.said):
            raise AssertionError(self._process.communicate()[1])
        (docs,) = (line for line in self.said if line.startswith("Reference "))
        self.address = docs.split()[-1].removesuffix("/docs")
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def __exit__(self, *error: object) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def stop(self) -> tuple[int, str, str]:
        """SIGTERM; the exit code and what else it wrote to stdout and stderr."""
        self._process.terminate()
        out, errors = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, out, errors


def wait_until(is_true: Callable[[], bool]) -> None:
    eventually(is_true, within=PATIENCE)
