"""Several server processes on one listening socket, and the supervisor that keeps them running.

The supervisor binds the socket and starts the workers; uvicorn restarts one that dies, replaces all of them on SIGHUP
one after the other, and lets them finish their requests on SIGTERM and SIGINT. Each worker opens the store by itself.
They share logins, idempotency keys and caches' revisions through the store, and counts of requests and wrong keys, and
the metrics, through a folder that the supervisor makes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from recollect.api.recollect import Recollect
from recollect.providers.otlp import export_spans
from recollect.server.app import create_app
from recollect.server.http.addresses import raise_open_file_limit
from recollect.settings import Settings, share_heaps, share_metrics
from recollect.store import IN_MEMORY, is_postgres, sqlite_path

MOST_BY_DEFAULT = 4
HEALTH_SECONDS = 30
"""Seconds after which a worker whose threads all hang is replaced. Long computations let other threads run."""


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
        _end_with_supervisor()
        raise_open_file_limit()
        share_heaps()
        with ExitStack() as stack:
            stack.enter_context(export_spans(self.settings.otel_endpoint))
            recollect = stack.enter_context(Recollect(settings=self.settings))
            app = create_app(recollect, no_auth=self.no_auth, hosts=[self.settings.host], shared=self.shared)
            opened = stack.pop_all()
        lifespan = app.router.lifespan_context

        @asynccontextmanager
        async def close_store_at_end(app: FastAPI) -> AsyncIterator[Any]:
            # Running requests have ended by then.
            with opened:
                async with lifespan(app) as state:
                    yield state

        app.router.lifespan_context = close_store_at_end
        return app


def run_workers(
    count: int, listener: socket.socket, settings: Settings, *, no_auth: bool, options: dict[str, Any]
) -> None:
    """Serve with `count` processes until SIGINT or SIGTERM."""
    with TemporaryDirectory(prefix="recollect-") as folder:
        shared = Path(folder)
        share_metrics(shared)
        config = uvicorn.Config(
            WorkerApp(settings=settings, no_auth=no_auth, shared=shared),
            factory=True,
            workers=count,
            timeout_worker_healthcheck=HEALTH_SECONDS,
            **options,
        )
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            Multiprocess(config, sockets=[listener]).run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _end_with_supervisor() -> None:
    """Stop this worker when its supervisor is gone, even if it was killed: nobody else would."""
    supervisor = parent_process()
    if supervisor is None:
        return

    def watch() -> None:
        connection.wait([supervisor.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="recollect-supervisor", daemon=True).start()
