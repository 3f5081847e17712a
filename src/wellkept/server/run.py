"""`wellkept serve`: open the store, listen, and finish running requests at the end.

With several workers, uvicorn keeps as many processes running on one listening socket. Each opens the store by itself.
They share logins, idempotency keys and caches' revisions through the store, and counts of requests and wrong keys, and
the metrics, through a folder that the first process makes.

Without a key no client could log in or create one over the network. So a server that listens only on this machine
creates an operator key itself if there is none, keeps it in a file that only its user can read, and shows it once. A
server that other machines can reach requires that one was created before.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import multiprocessing
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid, StoreError, WellkeptError
from wellkept.model import KeyScope
from wellkept.program import advise_install
from wellkept.providers.otlp import export_spans
from wellkept.server.app import create_app
from wellkept.server.console import sample
from wellkept.server.http.connection import ImpatientProtocol
from wellkept.server.http.routing import CONSOLE_PATH
from wellkept.server.mcp import mounting
from wellkept.settings import Settings, default_url, masked, share_heaps, share_metrics
from wellkept.store import IN_MEMORY, is_postgres, sqlite_path
from wellkept.store.notes.disk import make_private

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
        return CONSOLE_PATH
    code = wellkept.logins.link_for(wellkept.keys.verify(made[0]))
    return f"{CONSOLE_PATH}/open/{code}  (opens it once, within an hour)"


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


MAX_FILES = 65_536


def raise_open_file_limit() -> None:
    """Raise the limit on open files as far as the system allows; each connection is one."""
    try:
        resource = import_module("resource")
    # Windows has no such limit.
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


MOST_BY_DEFAULT = 4
HANG_SECONDS = 30
"""Seconds without a sign of life after which a worker is replaced. Long computations let its other threads run."""

NOT_NOTED_FILE = "not-noted"
"""File that a worker leaves in the shared folder if it could not write what waited in the background."""

log = logging.getLogger("wellkept.server")


def count_workers(settings: Settings) -> int:
    """Return how many processes serve these settings."""
    is_in_memory = not is_postgres(settings.store_url) and sqlite_path(settings.store_url) == IN_MEMORY
    if is_in_memory or sys.platform == "win32":
        return 1
    return settings.workers or min(os.cpu_count() or 1, MOST_BY_DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerApp:
    """Makes the application of one worker, which owns its store; sent to the worker's process."""

    settings: Settings
    no_auth: bool
    shared: Path

    def __call__(self) -> FastAPI:
        threading.Thread(target=end_with_parent, name="wellkept-parent", daemon=True).start()
        raise_open_file_limit()
        share_heaps()
        with ExitStack() as stack:
            stack.enter_context(export_spans(self.settings.otel_endpoint))
            try:
                wellkept = stack.enter_context(Wellkept(settings=self.settings))
            except WellkeptError as error:
                log.error("A worker process could not start; another one is tried: %s", error)
                sys.exit(1)
            app = create_app(wellkept, no_auth=self.no_auth, hosts=[self.settings.host], shared=self.shared)
            opened = stack.pop_all()
        lifespan = app.router.lifespan_context

        @asynccontextmanager
        async def close_store_at_end(app: FastAPI) -> AsyncIterator[Any]:
            try:
                async with lifespan(app) as state:
                    yield state
            finally:
                # Running requests have ended by then.
                if not close_store(opened):
                    (self.shared / NOT_NOTED_FILE).touch()

        app.router.lifespan_context = close_store_at_end
        return app


def close_store(opened: ExitStack) -> bool:
    """Close a store; return False if what waited in the background could not be written."""
    try:
        opened.close()
    except StoreError as error:
        log.error("The last recalls, prompts and uses of keys could not be noted: %s", error)
        return False
    return True


def end_with_parent() -> None:
    """End this process, when the one that started it is gone, like SIGTERM does."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def run_workers(
    count: int, listener: socket.socket, settings: Settings, *, no_auth: bool, options: dict[str, Any]
) -> bool:
    """Serve with `count` processes until SIGINT or SIGTERM; return False if one could not write what waited in it."""
    with TemporaryDirectory(prefix="wellkept-") as folder:
        shared = Path(folder)
        share_metrics(shared)
        app = WorkerApp(settings=settings, no_auth=no_auth, shared=shared)
        config = uvicorn.Config(app, factory=True, workers=count, timeout_worker_healthcheck=HANG_SECONDS, **options)
        Multiprocess(config, sockets=[listener]).run()
        return not (shared / NOT_NOTED_FILE).exists()


@contextmanager
def stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """End `server.run` on SIGINT and SIGTERM and return from it.

    uvicorn would raise the signal again after it has stopped, and the process would end before the store is closed.
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


FIRST_KEY_NAME = "made by the server on its first start"
FIRST_KEY_SUFFIX = ".admin-key"


def create_first_key(wellkept: Wellkept, *, is_loopback: bool) -> tuple[str, Path | None] | None:
    """Create an operator key for the tenant of the settings, if there is no key yet; return it and its file.

    The file is None for a store in memory: the key is gone with it. Returns None if there are keys already.

    Raises: Invalid when there is no key and the server would be reached from other machines.
    """
    if wellkept.keys.is_any_valid():
        return None
    if not is_loopback:
        raise Invalid(
            "There is no key yet, and other machines could reach this server. Create one first: "
            "wellkept admin keys create --scope operator"
        )
    key = wellkept.tenant().keys.create(KeyScope.OPERATOR, name=FIRST_KEY_NAME).key
    path = key_file(wellkept.settings.store_url)
    if path is not None:
        _keep(path, key)
    return key, path


def key_file(url: str) -> Path | None:
    """Return the file of the first key: beside the database, or in the data folder for a remote one.

    >>> key_file("sqlite:////var/lib/notes.db").name, key_file(":memory:")
    ('notes.db.admin-key', None)
    """
    if is_postgres(url):
        parts = urlsplit(url)
        name = re.sub(r"[^\w.-]+", "-", f"{parts.hostname or 'local'}{parts.path}").strip("-")
        return Path(sqlite_path(default_url())).parent / f"{name}{FIRST_KEY_SUFFIX}"
    path = sqlite_path(url)
    return None if path == IN_MEMORY else Path(f"{Path(path).absolute()}{FIRST_KEY_SUFFIX}")


def _keep(path: Path, key: str) -> None:
    """Raises: Invalid when the file cannot be written."""
    try:
        make_private(path.parent)
        # It may be left from a database that is gone.
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Invalid(
            f"The first key cannot be written to {path} ({error.strerror}). Create one yourself instead: "
            "wellkept admin keys create --scope operator"
        ) from error
