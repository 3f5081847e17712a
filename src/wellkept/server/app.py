"""The web application: routes, middlewares and error handlers for a `Wellkept` that the caller owns."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette import routing as starlette_routing
from starlette.types import ASGIApp

from wellkept import __version__
from wellkept.agent import AgentRunner
from wellkept.api.wellkept import Wellkept
from wellkept.server import openapi
from wellkept.server.console.login import ConsoleGuard
from wellkept.server.http.auth import AuthMiddleware, KeyCheck
from wellkept.server.http.connection import Connections, check_proxies
from wellkept.server.http.errors import add_error_handlers
from wellkept.server.http.idempotency import IdempotencyMiddleware
from wellkept.server.http.limits import SPARE, BodyLimit, RequestLimit
from wellkept.server.http.metrics import Metrics
from wellkept.server.http.requests import (
    DeadlineMiddleware,
    HostGuard,
    RequestMiddleware,
    detour,
    has_idempotency_key,
    leads_to_console,
    serve_http,
)
from wellkept.server.http.routing import FoundRoute, LongJobs, Route, Router, RouteTable
from wellkept.server.mcp import mounting
from wellkept.server.rest import agents, details, health, history, items, knowledge, memories, recall, sessions, tenant
from wellkept.server.rest.shapes import ErrorBody
from wellkept.server.threads import BodyReader, Threads

GROUPS: Sequence[Router] = (
    *(health.router, agents.router, memories.router, items.router, memories.facts, recall.router, sessions.router),
    *(details.router, recall.prompts, history.router, tenant.router, knowledge.router, tenant.keys),
    *(memories.changes, agents.runs),
)
"""The routes of the REST API, in the order of its reference."""

CONSOLE_PAGES = (
    "login home memories memory agent_forms prompts conversations changes details documents history users manage"
).split()
PAGES: Sequence[Router] = [import_module(f"wellkept.server.console.{name}").router for name in CONSOLE_PAGES]

REST: Sequence[Route] = [*(route for each in (openapi.router, *GROUPS) for route in each.routes), mounting.ROUTE]
CONSOLE: Sequence[Route] = [route for each in PAGES for route in each.routes]

SWITCH_SECONDS = 0.001
"""Switch interval of Python's threads. With the default of 5 ms a request that queries the database ten times waits up
to ten times 5 ms for each thread that computes."""

PUBLISH_SECONDS = 5.0
"""Interval at which the state of background threads is published for scrapes that another process answers."""

DESCRIPTION = """Memory for AI agents. An agent is created by its first memory, or explicitly with a name and a prompt.

- **Start** with [Create Memory](#?route=post-/api/agents/-agent-/memories)
  and [Recall](#?route=post-/api/agents/-agent-/recall).
- **Keys:** send `Authorization: Bearer <key>`, unless the server runs with `--no-auth`. Each route names the scope
  it needs.
- **Errors** have a sentence for people (`error`) and a word for programs (`code`).
- **Retries:** send the same `Idempotency-Key` with each try of a POST, and it is done once.
"""

NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
"""The framework would write queries and refused bodies, which are content, to traces and logs."""


def create_app(
    wellkept: Wellkept,
    *,
    no_auth: bool = False,
    hosts: Sequence[str] = (),
    runner: AgentRunner | None = None,
    shared: Path | None = None,
) -> FastAPI:
    """Return an application that serves `wellkept` to clients with a key; it never closes it.

    With `no_auth` it requires no key and serves the tenant of the settings to every client that can reach it. `hosts`
    are Host names it answers to besides those of this machine; a custom `runner` may give agents more tools. Server
    processes that name the same folder `shared` count requests and wrong keys together.

    Raises: Invalid.
    """
    app = FastAPI(
        title="wellkept",
        version=__version__,
        description=DESCRIPTION,
        lifespan=_lifespan,
        # `openapi` serves the document and its page.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        servers=openapi.SERVERS,
        openapi_tags=[{"name": name, "description": description} for name, description in openapi.TAGS.items()],
        telemetry=NO_TELEMETRY,
        responses={"default": {"model": ErrorBody}},
    )
    app.state.wellkept = wellkept
    app.state.runner = AgentRunner(wellkept) if runner is None else runner
    # Fail now, not with the first request, if the tenant of the settings is invalid.
    wellkept.tenant()
    _add_routes(app, wellkept)
    add_error_handlers(app)
    openapi.complete_document(app, {route.name: route.scope for route in REST}, no_auth=no_auth)
    _add_middlewares(app, wellkept, no_auth=no_auth, hosts=hosts, shared=shared)
    return app


def _add_routes(app: FastAPI, wellkept: Wellkept) -> None:
    """Add every route to the framework and to the table of scopes."""
    app.state.routes = RouteTable([*REST, *CONSOLE])
    for each in (*GROUPS, *PAGES, openapi.router):
        app.include_router(each.api)
    app.state.mcp = mounting.create_endpoint(wellkept)
    endpoint = starlette_routing.Route(mounting.PATH, app.state.mcp, methods=["POST"], include_in_schema=False)
    app.router.routes.append(endpoint)
    app.router.routes.insert(0, FoundRoute())


def _add_middlewares(
    app: FastAPI, wellkept: Wellkept, *, no_auth: bool, hosts: Sequence[str], shared: Path | None
) -> None:
    """Add what each request passes before its route."""
    settings, state = wellkept.settings, app.state
    check_proxies(settings.trusted_proxies)
    state.logins = wellkept.logins
    state.metrics = Metrics(wellkept, shared)
    state.keys = KeyCheck(wellkept, state.metrics, shared and shared / "failures")
    most = 0 if settings.trusted_proxies else settings.max_connections
    state.connections = Connections(most=most, refused=state.metrics.refused.labels("connections"))
    state.store_checks = health.StoreChecks()
    # One for each concurrent request: a tenant has a share of those, so its slow work leaves threads to others.
    state.threads = Threads(most=settings.max_requests + SPARE)
    state.reader = BodyReader()
    state.long_jobs = LongJobs()

    def guard(routes: ASGIApp) -> ASGIApp:
        once = IdempotencyMiddleware(routes, idempotency=wellkept.idempotency, threads=state.threads)
        answered = detour(routes, when=has_idempotency_key, through=once)
        limited = RequestLimit(BodyLimit(answered, reader=state.reader), most=settings.max_requests)
        # Outside the limits: watching the connection must not count as waiting for the body, which frees a slot.
        timed = DeadlineMiddleware(limited, settings=settings)
        rates = shared and shared / "rates"
        known = AuthMiddleware(
            timed, wellkept=wellkept, keys=state.keys, table=state.routes, no_auth=no_auth, rates=rates
        )
        shown = detour(known, when=leads_to_console, through=ConsoleGuard(known))
        hosted = HostGuard(shown, hosts=[*hosts, *settings.public_hosts])
        return serve_http(RequestMiddleware(hosted, metrics=state.metrics), routes)

    app.add_middleware(guard)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    current_default_thread_limiter().total_tokens = app.state.wellkept.settings.max_requests + SPARE
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    # What is loaded stays. Looking for garbage among it would stop all requests for a tenth of a second at times.
    gc.freeze()
    app.state.wellkept.maintenance.start()
    app.state.wellkept.embedding.warm_up()
    publishing = asyncio.create_task(_publish_metrics(app.state.metrics))
    async with app.state.mcp.running():
        yield {"connections": app.state.connections}
    publishing.cancel()
    app.state.wellkept.maintenance.stop()
    gc.unfreeze()
    sys.setswitchinterval(interval)
    app.state.threads.close()
    app.state.reader.close()


async def _publish_metrics(metrics: Metrics) -> None:
    while metrics.is_shared:
        metrics.refresh_background()
        await asyncio.sleep(PUBLISH_SECONDS)
