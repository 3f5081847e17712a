"""The web application: routes, guards and errors, put together around a `Recollect` that the caller owns."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from threading import Lock
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Route

from recollect import __version__
from recollect.api.recollect import Recollect
from recollect.model import Json, KeyScope
from recollect.runner import AgentRunner
from recollect.server import reference
from recollect.server.access import KeyGuard
from recollect.server.addresses import Connections, KeyCheck
from recollect.server.admin.guard import ConsoleGuard
from recollect.server.admin.logins import Logins
from recollect.server.admin.routes import ROUTERS
from recollect.server.asked import HeadAsGet, nothing_unheard
from recollect.server.deadlines import Deadlines
from recollect.server.direct import Direct
from recollect.server.errors import add_error_handlers
from recollect.server.guard import BodyLimit, HostGuard
from recollect.server.idempotency import PARAMETER, IdempotencyKeys
from recollect.server.limits import SPARE, InFlight
from recollect.server.long_jobs import LongJobs
from recollect.server.mcp import http as mcp_http
from recollect.server.metrics import Measured, Metrics
from recollect.server.request_id import RequestId
from recollect.server.rest import (
    agent_runs,
    agents,
    audit,
    capture,
    consolidation,
    context,
    details,
    erasure,
    health,
    keys,
    knowledge,
    memories,
    metrics,
    sessions,
    skills,
    transfer,
    upkeep,
    workflows,
)
from recollect.server.rest.answers import ErrorBody
from recollect.server.scopes import SCOPES
from recollect.server.threads import BodyReader, Threads

GROUPS = (
    health,
    metrics,
    agents,
    memories,
    sessions,
    details,
    context,
    capture,
    audit,
    upkeep,
    erasure,
    knowledge,
    skills,
    keys,
    workflows,
    consolidation,
    agent_runs,
    transfer,
)
"""The routes of the REST API."""

SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps Python's lock from the others. By the default of 5 ms a request that looks into
the database ten times waits ten times as long for each neighbour that computes."""

DESCRIPTION = (
    "Memory for AI agents. An agent is made by its first memory, or beforehand to give it a name and a prompt."
)

REFUSAL: Json = {
    "description": "Refused or failed; the sentence says why.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
}
SCHEME: Json = {"type": "http", "scheme": "bearer", "description": "A key made with recollect keys create."}

NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
"""The framework would put queries and refused bodies into traces and logs, which are content."""


def create_app(
    recollect: Recollect, *, no_auth: bool = False, hosts: Sequence[str] = (), runner: AgentRunner | None = None
) -> FastAPI:
    """An application that serves `recollect` to whoever has a key; it never closes it.

    With `no_auth` it asks for none and serves the tenant of the settings to everybody who can reach it. `hosts` are
    names it answers to besides those of this machine; a `runner` of your own may give agents more tools. Raises:
    Invalid.
    """
    app = FastAPI(
        title="recollect",
        version=__version__,
        description=DESCRIPTION,
        lifespan=_lifespan,
        openapi_url=None,  # `reference` serves it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        telemetry=NO_TELEMETRY,
        responses={"default": {"model": ErrorBody}},
    )
    app.state.recollect = recollect
    app.state.runner = AgentRunner(recollect) if runner is None else runner
    recollect.tenant()  # a tenant that cannot be one is refused now, not with the first request
    for group in GROUPS:
        app.include_router(group.router, dependencies=[Depends(nothing_unheard)])
    for pages in ROUTERS:
        app.include_router(pages)
    reference.add_docs(app)
    app.state.mcp = mcp_http.McpEndpoint(recollect)
    app.router.routes.append(Route(mcp_http.PATH, app.state.mcp, methods=["POST"], include_in_schema=False))
    add_error_handlers(app)
    _complete_document(app, no_auth=no_auth)
    _add_guards(app, recollect, no_auth=no_auth, hosts=hosts)
    return app


def _add_guards(app: FastAPI, recollect: Recollect, *, no_auth: bool, hosts: Sequence[str]) -> None:
    """What a request passes before it reaches a route."""
    settings = recollect.settings
    app.state.logins = Logins(recollect)
    app.state.metrics = Metrics(recollect)
    app.state.keys = KeyCheck(recollect, app.state.metrics)
    app.state.connections = Connections(
        per_address=settings.max_connections, proxies=settings.trusted_proxies, metrics=app.state.metrics
    )
    routes = [each for group in GROUPS for each in group.router.routes if isinstance(each, APIRoute)]
    app.state.store_checks = health.StoreChecks()
    # As many as requests may be under way: a tenant has a share of those, so its slow work leaves threads to others.
    app.state.threads = Threads(most=settings.max_requests + SPARE)
    app.state.reader = BodyReader()
    # The last one added sees a request first.
    app.add_middleware(Direct, routes=routes, threads=app.state.threads, reader=app.state.reader)
    app.add_middleware(HeadAsGet)
    app.add_middleware(IdempotencyKeys, idempotency=recollect.idempotency, threads=app.state.threads)
    app.add_middleware(LongJobs)
    app.add_middleware(BodyLimit, reader=app.state.reader)
    app.add_middleware(InFlight, most=settings.max_requests)
    # Outside the limit above: its listening for the client is not the waiting for a body that gives up a place.
    app.add_middleware(Deadlines, settings=settings)
    app.add_middleware(
        KeyGuard,
        recollect=recollect,
        keys=app.state.keys,
        logins=app.state.logins,
        router=app.router,
        no_auth=no_auth,
    )
    app.add_middleware(ConsoleGuard)
    app.add_middleware(HostGuard, hosts=[*hosts, *settings.public_hosts])
    app.add_middleware(Measured, metrics=app.state.metrics)
    app.add_middleware(RequestId)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    current_default_thread_limiter().total_tokens = app.state.recollect.settings.max_requests + SPARE
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    async with app.state.mcp.running():
        yield {"connections": app.state.connections}
    sys.setswitchinterval(interval)
    app.state.threads.close()
    app.state.reader.close()


def _complete_document(app: FastAPI, *, no_auth: bool) -> None:
    """Let the OpenAPI document say which scope each route takes, and that all of them refuse in the same way."""
    written, lock = app.openapi, Lock()

    def openapi() -> Json:
        with lock:  # else a second thread were given what the first has not completed
            return completed()

    def completed() -> Json:
        is_new = app.openapi_schema is None
        document = written()
        if is_new:
            for path, methods in document["paths"].items():
                for method, said in methods.items():
                    if method == "post":
                        said.setdefault("parameters", []).append(PARAMETER)
                    said["responses"]["default"] = REFUSAL  # also where the answer itself is no JSON
                    if not no_auth:
                        scope = SCOPES.get(f"{method.upper()} {path}", KeyScope.ADMIN)
                        said["security"] = [] if scope is None else [{"key": []}]
                        said["x-scope"] = "none" if scope is None else scope.value
            if not no_auth:
                document["components"]["securitySchemes"] = {"key": SCHEME}
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _operation_id(route: APIRoute) -> str:
    return route.name
