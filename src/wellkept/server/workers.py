"""Several server processes on one listening socket, kept running by uvicorn.

Each worker opens the store by itself. They share logins, idempotency keys and caches' revisions through the store, and
counts of requests and wrong keys, and the metrics, through a folder that the first process makes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from wellkept.api.wellkept import Wellkept
from wellkept.errors import StoreError, WellkeptError
from wellkept.providers.otlp import export_spans
from wellkept.server.app import create_app
from wellkept.server.http.addresses import raise_open_file_limit
from wellkept.settings import Settings, share_heaps, share_metrics
from wellkept.store import IN_MEMORY, is_postgres, sqlite_path

MOST_BY_DEFAULT = 4
HANG_SECONDS = 30
"""Seconds without a sign of life after which a worker is replaced. Long computations let its other threads run."""

NOT_NOTED = "not-noted"
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
                    (self.shared / NOT_NOTED).touch()

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
        return not (shared / NOT_NOTED).exists()


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
