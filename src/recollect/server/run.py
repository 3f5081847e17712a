"""`recollect serve`: open the store, listen, and leave nothing half done at the end."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType

import uvicorn

from recollect.api import Recollect
from recollect.errors import Invalid
from recollect.server.app import create_app
from recollect.settings import Settings, masked

GRACE_SECONDS = 10
"""How long requests under way may take to finish when the server is told to stop."""

BACKLOG = 2048


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def serve(settings: Settings, *, no_auth: bool, say: Callable[[str], None] = _say) -> None:
    """Serve the store of these settings until told to stop (Ctrl-C, SIGTERM); then finish what is under way.

    Raises: Invalid, StoreError, SchemaMismatch.
    """
    _check_access(settings.host, no_auth=no_auth)
    with closing(listening(settings.host, settings.port)) as listener, Recollect(settings=settings) as recollect:
        app = create_app(recollect, hosts=[settings.host])
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="on",
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        with _stopped_by_signals(server):
            address = _address(listener)
            say(f"Memories  {masked(settings.store_url)}")
            say(f"REST      {address}/api  (tenant {settings.tenant}, no login)")
            say(f"Reference {address}/docs")
            server.run(sockets=[listener])
    say("Stopped; everything is stored.")


def _check_access(host: str, *, no_auth: bool) -> None:
    """Raises: Invalid unless the caller asked for a server without a login, on this machine only."""
    if not no_auth:
        raise Invalid(
            "This version has no API keys yet, so it cannot tell who is asking. To serve programs on this machine "
            "only, start it with: recollect serve --no-auth"
        )
    if not is_loopback(host):
        raise Invalid(
            f"Without a login the server may listen on this machine only, not on {host!r}: use --host 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens, made before anything else is opened: a taken port is the first thing to hear about.

    Raises: Invalid.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay off only then: 40 ms of each answer otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two servers share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Invalid(f"Port {port} is taken by another program; choose another one with --port.") from error
        raise Invalid(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """End `server.run` on SIGINT and SIGTERM and come back from it.

    uvicorn stops by itself, but then raises the signal again, which by default would end the process before the store
    is closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
