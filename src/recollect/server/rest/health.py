"""Whether the server can do its work: `/health`."""

from __future__ import annotations

import logging
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect import __version__
from recollect.api import Recollect, TenantMemory
from recollect.errors import StoreError
from recollect.server.auth import CurrentRecollect, PossibleAccess
from recollect.server.errors import error_response
from recollect.server.rest.answers import Alive, Health
from recollect.settings import Settings

NO_EMBEDDER = "off"
QUEUE_STANDS = 60.0
"""Seconds without a write after which a background queue counts as standing still."""

log = logging.getLogger("recollect.server")
router = APIRouter(tags=["health"])


@router.get("/health", response_model=Health | Alive)
def get_health(recollect: CurrentRecollect, access: PossibleAccess) -> Alive | JSONResponse:
    """Asks the store. "degraded" names what is wrong; 503 only when the store cannot answer. Without a key the answer
    is the status alone."""
    health = _health(recollect, recollect.tenant(None if access is None else access.tenant))
    if access is not None:
        return health
    if isinstance(health, Health):
        return Alive(status=health.status)
    return error_response(503, "The store does not answer.", "store", also={"status": "degraded"})


def _health(recollect: Recollect, tenant: TenantMemory) -> Health | JSONResponse:
    settings = recollect.settings
    health = Health(status="ok", version=__version__, engine=_engine(settings), embedder=settings.embedder, problems=[])
    try:
        tenant.list_agents(limit=1)
        problems = problems_of(recollect, tenant)
    except StoreError as error:
        log.error("The store does not answer: %s", error)
        down = health.model_copy(update={"status": "degraded", "problems": [str(error)]})
        return error_response(503, str(error), error.code, also=down.model_dump())
    return health.model_copy(update={"status": "degraded", "problems": problems}) if problems else health


def problems_of(recollect: Recollect, tenant: TenantMemory) -> list[str]:
    """What is wrong though the store answers, in sentences.

    Raises: StoreError.
    """
    waiting = 0 if recollect.settings.embedder == NO_EMBEDDER else tenant.count_waiting()
    problems = list(recollect.skill_problems())
    if problem := recollect.embedder_problem():
        problems.append(f"The embedder failed: {problem}")
    if waiting:
        problems.append(f"Texts that wait for their vector, and are found by their words alone until then: {waiting}.")
    return problems + _background_problems(recollect, tenant)


def _background_problems(recollect: Recollect, tenant: TenantMemory) -> list[str]:
    """Return sentences about background threads, and about texts of this tenant only."""
    problems = []
    for each in recollect.background():
        if not each.is_running:
            problems.append(f"The background thread {each.name} has stopped; it starts again with its next work.")
        elif each.oldest_seconds > QUEUE_STANDS:
            why = each.last_error or "It may wait for something that hangs."
            problems.append(f"The background queue {each.name} has not moved for {each.oldest_seconds:.0f} s. {why}")
    if refused := recollect.list_refused(tenant.id):
        first = f"{refused[0].agent} {refused[0].id}".strip()
        problems.append(f"Texts the embedder refuses, tried again later: {len(refused)}; {first}: {refused[0].problem}")
    return problems


def _engine(settings: Settings) -> Literal["sqlite", "postgres"]:
    return "postgres" if settings.store_url.startswith(("postgresql://", "postgres://")) else "sqlite"
