"""The web application: routes, guards and errors, put together around a `Recollect` that the caller owns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.routing import APIRoute

from recollect import __version__
from recollect.api import Recollect
from recollect.server import reference
from recollect.server.errors import add_error_handlers
from recollect.server.guard import BodyLimit, HostGuard
from recollect.server.request_id import RequestId
from recollect.server.rest import agents, audit, health, memories, skills, upkeep
from recollect.server.rest.answers import ErrorBody

THREADS = 64
"""Endpoints run in worker threads. So many writes may wait at once, and those that wait share a commit."""

DESCRIPTION = (
    "Memory for AI agents. An agent is made by its first memory, or beforehand to give it a name and a prompt."
)


def create_app(recollect: Recollect, *, tenant: str | None = None, hosts: Sequence[str] = ()) -> FastAPI:
    """An application that serves `recollect` to one tenant (default: the settings'); it never closes it.

    `hosts` are names it answers to besides those of this machine. Raises: Invalid.
    """
    app = FastAPI(
        title="recollect",
        version=__version__,
        description=DESCRIPTION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        responses={"default": {"model": ErrorBody, "description": "Refused or failed; the sentence says why."}},
    )
    app.state.recollect = recollect
    app.state.tenant = recollect.tenant(tenant)
    for router in (health.router, agents.router, memories.router, audit.router, upkeep.router, skills.router):
        app.include_router(router)
    reference.add_docs(app)
    add_error_handlers(app)
    app.add_middleware(BodyLimit)  # the last one added is the first to see a request
    app.add_middleware(HostGuard, hosts=hosts)
    app.add_middleware(RequestId)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def _operation_id(route: APIRoute) -> str:
    return route.name
