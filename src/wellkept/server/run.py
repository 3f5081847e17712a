"""`wellkept serve`: open the store, listen, and finish running requests at the end."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import uvicorn

from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid, StoreError
from wellkept.program import advise_install
from wellkept.providers.otlp import export_spans
from wellkept.server.app import create_app
from wellkept.server.console import sample
from wellkept.server.console.logins import PATH
from wellkept.server.first_key import create_first_key
from wellkept.server.http.addresses import raise_open_file_limit
from wellkept.server.http.connection import ImpatientProtocol
from wellkept.server.mcp import mounting
from wellkept.server.workers import close_store, count_workers, run_workers, stopped_by_signals
from wellkept.settings import Settings, masked, share_heaps

GRACE_SECONDS = 10
"""Seconds that running requests get to finish when the server stops."""

NO_MCP = f"not installed; {advise_install('mcp')}"
NOT_NOTED = (
    "Stopped. Every acknowledged write is stored; the last recalls, prompts and uses of keys could not be noted."
)
BACKLOG = 2048


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def serve(settings: Settings, *, no_auth: bool, has_sample: bool = False, say: Callable[[str], None] = _say) -> None:
    """Serve the store of these settings until SIGINT or SIGTERM, then finish running requests.

    With `has_sample`, sample data is added first, unless it is there.

    Raises: Invalid, StoreError, SchemaMismatch.
    """
    if no_auth and not is_loopback(settings.host):
        raise Invalid(
            "Without keys the server may listen on this machine only, not on "
            f"{settings.host!r}: use --host 127.0.0.1, or leave --no-auth out."
        )
    raise_open_file_limit()
    count = count_workers(settings)
    with closing(listening(settings.host, settings.port)) as listener:
        if count > 1:
            # Workers open the store themselves: this creates or upgrades it, and the first key, once.
            with Wellkept(settings=settings) as wellkept:
                _announce(wellkept, listener, no_auth=no_auth, has_sample=has_sample, say=say)
            proxies = settings.trusted_proxies
            is_noted = run_workers(count, listener, settings, no_auth=no_auth, options=options(proxies=proxies))
        else:
            is_noted = _serve_alone(settings, listener, no_auth=no_auth, has_sample=has_sample, say=say)
    if not is_noted:
        raise StoreError(NOT_NOTED)
    say("Stopped; everything is stored.")


def _serve_alone(
    settings: Settings, listener: socket.socket, *, no_auth: bool, has_sample: bool, say: Callable[[str], None]
) -> bool:
    """Serve in this process; return False if what waited in the background could not be written at the end."""
    share_heaps()
    with ExitStack() as stack:
        stack.enter_context(export_spans(settings.otel_endpoint))
        wellkept = stack.enter_context(Wellkept(settings=settings))
        app = create_app(wellkept, no_auth=no_auth, hosts=[settings.host])
        server = uvicorn.Server(uvicorn.Config(app, **options(proxies=settings.trusted_proxies)))
        with stopped_by_signals(server):
            _announce(wellkept, listener, no_auth=no_auth, has_sample=has_sample, say=say)
            server.run(sockets=[listener])
        return close_store(stack.pop_all())


def _announce(
    wellkept: Wellkept, listener: socket.socket, *, no_auth: bool, has_sample: bool, say: Callable[[str], None]
) -> None:
    """Create the first key if there is none, and show where everything is. Raises: Invalid."""
    if has_sample:
        sample.add(wellkept.tenant(), wellkept.now())
    settings, address = wellkept.settings, _address(listener)
    made = None if no_auth else create_first_key(wellkept, is_loopback=is_loopback(settings.host))
    say(f"Memories  {masked(settings.store_url)}")
    say(f"REST      {address}/api  ({f'tenant {settings.tenant}, no login' if no_auth else 'by key'})")
    say(f"MCP       {address + mounting.PATH if mounting.has_mcp() else NO_MCP}")
    say(f"Reference {address}/docs")
    say(f"Console   {address}{_way_in(wellkept, made)}")
    if made is not None:
        _tell(made, say)


def options(*, proxies: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options for uvicorn; the forwarded headers of `proxies` are trusted."""
    return {
        "log_level": "warning",
        # Paths hold names of agents.
        "access_log": False,
        "server_header": False,
        "proxy_headers": bool(proxies),
        "forwarded_allow_ips": list(proxies),
        "ws": "none",
        "http": ImpatientProtocol,
        "lifespan": "on",
        "timeout_graceful_shutdown": GRACE_SECONDS,
    }


def _way_in(wellkept: Wellkept, made: tuple[str, Path | None] | None) -> str:
    """Return the path of the console; on the first start one that logs in once, since browsers keep a history."""
    if made is None:
        return PATH
    code = wellkept.logins.link_for(wellkept.keys.verify(made[0]))
    return f"{PATH}/open/{code}  (opens it once, within an hour)"


def _tell(made: tuple[str, Path | None], say: Callable[[str], None]) -> None:
    """Show the first key once."""
    key, path = made
    say(f"Admin key {key}")
    say(f"          shown this once; kept in {path}" if path else "          shown this once, and gone with the store")


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
    """Return a listening socket; called before anything is opened, so that a taken port is reported first.

    Raises: Invalid.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is named; otherwise each answer takes 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # On Windows it would let two servers share the port.
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Invalid(f"Port {port} is in use by another program; choose another one with --port.") from error
        raise Invalid(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
