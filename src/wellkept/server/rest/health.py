"""Health and metrics of the server: `/health` and `/metrics`.

Monitors give up soon, so the answer never waits for a store that hangs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Literal, Self

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from wellkept import __version__
from wellkept.api.wellkept import TenantMemory, Wellkept
from wellkept.errors import StoreError
from wellkept.model import KeyScope, MaintenanceStatus
from wellkept.server.http.auth import CurrentWellkept, PossibleAccess
from wellkept.server.http.errors import error_response
from wellkept.server.http.limits import HEALTH_WITHIN, SPARE
from wellkept.server.http.routing import OPERATOR, PUBLIC, Router
from wellkept.server.rest.shapes import field
from wellkept.server.threads import Threads
from wellkept.settings import Settings


class HealthStatus(BaseModel):
    """Status of the server."""

    status: Literal["ok", "degraded"]


class MaintenanceBody(BaseModel):
    """Last and next maintenance of the whole store."""

    last_at: datetime | None = field(description="End of the last run; null: none so far.")
    next_at: datetime | None = field(description="null: the server does not run it by itself.")
    error: str = field(description="Reason why the last run failed, if it did.")
    counts: dict[str, int] | None = field(description="What the last run did; for an operator key only.")

    @classmethod
    def of(cls, status: MaintenanceStatus, *, is_operator: bool) -> Self:
        last = status.last
        return cls(
            last_at=None if last is None else last.at,
            next_at=status.next_at,
            error="" if last is None else last.error,
            counts=dict(last.counts) if last is not None and is_operator else None,
        )


class HealthBody(HealthStatus):
    """Status of the server, for clients with a key."""

    version: str
    engine: Literal["sqlite", "postgres"]
    embedder: str
    problems: list[str] = field(description="Sentences about what is wrong.")
    maintenance: MaintenanceBody | None = None


NO_EMBEDDER = "off"
QUEUE_STANDS = 60.0
"""Seconds without a write after which a background queue counts as stalled."""

SILENT = 3.0
"""Seconds without any answer after which the store counts as unavailable."""

SLOW = "The store does not answer at the moment: it is busy or failing."
NO_ANSWER = "The store does not answer."
log = logging.getLogger("wellkept.server")

# Monitors may add parameters of their own.
router = Router(tags=["health"], route_class=APIRoute)


class StoreChecks:
    """Checks of the store. A few may hang; no more are started until one of them ends."""

    def __init__(self) -> None:
        self._threads = Threads(most=SPARE)
        # Start of the first check since the latest answer. Answers that come too late count, too.
        self._silent_since = math.inf

    async def problems(self, wellkept: Wellkept, tenant: TenantMemory, *, within: float) -> Sequence[str]:
        """Return sentences about what is wrong. Raises: StoreError when the store is unavailable."""
        began = monotonic()
        self._silent_since = min(self._silent_since, began)

        def ask() -> Sequence[str]:
            tenant.agents.list(limit=1)
            wellkept.maintenance.refresh()
            # Asks every node of a cluster, so that `find_problems` names those that are away.
            wellkept.count_bytes()
            found = find_problems(wellkept, tenant)
            self._silent_since = math.inf
            return found

        try:
            return await self._threads.attempt(ask, within=within)
        except TimeoutError:
            if began - self._silent_since > SILENT:
                raise StoreError(NO_ANSWER) from None
            return [SLOW, *wellkept.problems()]
        except StoreError:
            self._silent_since = math.inf
            raise


@router.get("/health", scope=PUBLIC, response_model=HealthBody | HealthStatus)
async def get_health(
    request: Request, wellkept: CurrentWellkept, access: PossibleAccess
) -> HealthStatus | JSONResponse:
    """Check the store, for less than half a second. "degraded" comes with what is wrong; 503 means that the store
    cannot answer. Without a key only the status is returned."""
    settings = wellkept.settings
    tenant = wellkept.tenant(None if access is None else access.tenant)
    health = HealthBody(
        status="ok", version=__version__, engine=_engine(settings), embedder=settings.embedder, problems=[]
    )
    try:
        if problems := await request.app.state.store_checks.problems(wellkept, tenant, within=HEALTH_WITHIN / 2):
            health = health.model_copy(update={"status": "degraded", "problems": list(problems)})
    except StoreError as error:
        log.error("The store does not answer: %s", error)
        if access is None:
            return error_response(503, NO_ANSWER, "store", also={"status": "degraded"})
        down = health.model_copy(update={"status": "degraded", "problems": [str(error)]})
        return error_response(503, str(error), error.code, also=down.model_dump())
    if access is None:
        return HealthStatus(status=health.status)
    is_operator = access.scope is KeyScope.OPERATOR
    maintenance = MaintenanceBody.of(wellkept.maintenance.status(), is_operator=is_operator)
    return health.model_copy(update={"maintenance": maintenance})


def find_problems(wellkept: Wellkept, tenant: TenantMemory) -> list[str]:
    """Return sentences about what is wrong although the store answers. Raises: StoreError."""
    problems = [*wellkept.skill_problems()]
    if problem := wellkept.embedding.problem:
        problems.append(f"The embedder failed: {problem}")
    # With a remote embedder every new text waits a moment. One may have been stored since the first look.
    if wellkept.settings.embedder != NO_EMBEDDER and not _is_embedding(wellkept):
        waiting = tenant.upkeep.count_waiting()
        if waiting and not _is_embedding(wellkept):
            problems.append(f"Texts without a vector yet, found by their words alone until then: {waiting}.")
    problems += wellkept.problems()
    for each in wellkept.background():
        if not each.is_running:
            problems.append(f"The background thread {each.name} has stopped; it starts again with its next work.")
        elif each.oldest_seconds > QUEUE_STANDS:
            why = each.last_error or "It may be waiting for something that hangs."
            problems.append(f"The background queue {each.name} has not moved for {each.oldest_seconds:.0f} s. {why}")
    last = wellkept.maintenance.status().last
    if last is not None and last.error:
        problems.append(f"The last maintenance failed: {last.error}")
    # Only texts of this tenant.
    if refused := wellkept.embedding.refused(tenant.id):
        first = f"{refused[0].agent} {refused[0].id}".strip()
        problems.append(f"Texts the embedder refuses, tried again later: {len(refused)}; {first}: {refused[0].problem}")
    return problems


def _is_embedding(wellkept: Wellkept) -> bool:
    """Return True if the embedder works and the thread has made progress lately."""
    seconds = next(each.oldest_seconds for each in wellkept.background() if each.name == "embedding")
    return not wellkept.embedding.problem and 0 < seconds <= QUEUE_STANDS


def _engine(settings: Settings) -> Literal["sqlite", "postgres"]:
    return "postgres" if settings.store_url.startswith(("postgresql://", "postgres://")) else "sqlite"


PLAIN = CONTENT_TYPE_LATEST.partition(";")[0]


class Exposition(Response):
    """Metrics in the text format of Prometheus."""

    media_type = PLAIN


@router.get(
    "/metrics",
    scope=OPERATOR,
    response_class=Exposition,
    responses={200: {"content": {PLAIN: {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}},
)
def get_metrics(request: Request) -> Exposition:
    """Return metrics for Prometheus. They are about the whole server, so this requires an operator key."""
    return Exposition(request.app.state.metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
