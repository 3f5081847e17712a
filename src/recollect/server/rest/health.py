"""Whether the server can do its work: `/health`.

Whoever watches the server gives up soon, so the answer never waits for a store that hangs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from recollect import __version__
from recollect.api.recollect import Recollect, TenantMemory
from recollect.errors import StoreError
from recollect.server.auth import CurrentRecollect, PossibleAccess
from recollect.server.errors import error_response
from recollect.server.limits import HEALTH_WITHIN, SPARE
from recollect.server.rest.answers import Alive, Health
from recollect.server.threads import Threads
from recollect.settings import Settings

NO_EMBEDDER = "off"
QUEUE_STANDS = 60.0
"""Seconds without a write after which a background queue counts as standing still."""

SILENT = 3.0
"""Seconds without any answer after which the store is taken to be away."""

REMEMBERED = 15.0
"""Seconds for which a check that failed, too late for whoever asked, counts as silence; watchers ask more often."""

SLOW = "The store does not answer at the moment: it is busy, or about to fail."
NO_ANSWER = "The store does not answer."

log = logging.getLogger("recollect.server")
router = APIRouter(tags=["health"])


class StoreChecks:
    """Asks the store how it is. A few questions may hang; more are not asked until one of them is answered."""

    def __init__(self) -> None:
        self._threads = Threads(most=SPARE)
        # The beginning of the first check since the latest answer. Answers nobody waits for any more count too.
        self._silent_since = math.inf
        self._failed_at = math.inf

    async def problems(self, recollect: Recollect, tenant: TenantMemory, *, within: float) -> Sequence[str]:
        """Return what is wrong, in sentences.

        Raises: StoreError when the store is away.
        """
        began = monotonic()
        if self._silent_since == math.inf or began - self._failed_at > REMEMBERED:
            self._silent_since, self._failed_at = began, math.inf
        try:
            return await self._threads.attempt(partial(self._ask, recollect, tenant), within=within)
        except TimeoutError:
            if began - self._silent_since > SILENT:
                raise StoreError(NO_ANSWER) from None
            return [SLOW, *recollect.problems()]
        except StoreError:
            self._silent_since = math.inf
            raise

    def _ask(self, recollect: Recollect, tenant: TenantMemory) -> Sequence[str]:
        """Raises: StoreError."""
        try:
            found = _asked(recollect, tenant)
        except StoreError:
            self._failed_at = monotonic()
            raise
        self._silent_since = self._failed_at = math.inf
        return found


@router.get("/health", response_model=Health | Alive)
async def get_health(request: Request, recollect: CurrentRecollect, access: PossibleAccess) -> Alive | JSONResponse:
    """Asks the store, and waits less than half a second for it. "degraded" names what is wrong; 503 only when the store
    cannot answer. Without a key the answer is the status alone."""
    settings, within = recollect.settings, HEALTH_WITHIN - request.scope["state"].get("waited", 0.0)
    tenant = recollect.tenant(None if access is None else access.tenant)
    health = Health(status="ok", version=__version__, engine=_engine(settings), embedder=settings.embedder, problems=[])
    try:
        if problems := await request.app.state.store_checks.problems(recollect, tenant, within=within):
            health = health.model_copy(update={"status": "degraded", "problems": list(problems)})
    except StoreError as error:
        log.error("The store does not answer: %s", error)
        if access is None:
            return error_response(503, NO_ANSWER, "store", also={"status": "degraded"})
        down = health.model_copy(update={"status": "degraded", "problems": [str(error)]})
        return error_response(503, str(error), error.code, also=down.model_dump())
    return Alive(status=health.status) if access is None else health


def _asked(recollect: Recollect, tenant: TenantMemory) -> list[str]:
    """Raises: StoreError."""
    tenant.list_agents(limit=1)
    return problems_of(recollect, tenant)


def problems_of(recollect: Recollect, tenant: TenantMemory) -> list[str]:
    """What is wrong though the store answers, in sentences.

    Raises: StoreError.
    """
    return [problem for find in FINDERS for problem in find(recollect, tenant)]


def _skills(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    yield from recollect.skill_problems()


def _embedder(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    if problem := recollect.embedder_problem():
        yield f"The embedder failed: {problem}"


def _waiting(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    waiting = 0 if recollect.settings.embedder == NO_EMBEDDER else tenant.count_waiting()
    if waiting:
        yield f"Texts that wait for their vector, and are found by their words alone until then: {waiting}."


def _models_and_disk(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    yield from recollect.problems()


def _background(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    for each in recollect.background():
        if not each.is_running:
            yield f"The background thread {each.name} has stopped; it starts again with its next work."
        elif each.oldest_seconds > QUEUE_STANDS:
            why = each.last_error or "It may wait for something that hangs."
            yield f"The background queue {each.name} has not moved for {each.oldest_seconds:.0f} s. {why}"


def _refused_texts(recollect: Recollect, tenant: TenantMemory) -> Iterator[str]:
    """Name texts of this tenant only."""
    if refused := recollect.list_refused(tenant.id):
        first = f"{refused[0].agent} {refused[0].id}".strip()
        yield f"Texts the embedder refuses, tried again later: {len(refused)}; {first}: {refused[0].problem}"


FINDERS: Sequence[Callable[[Recollect, TenantMemory], Iterator[str]]] = (
    _skills,
    _embedder,
    _waiting,
    _models_and_disk,
    _background,
    _refused_texts,
)
"""What may be wrong, in the order in which it is said."""


def _engine(settings: Settings) -> Literal["sqlite", "postgres"]:
    return "postgres" if settings.store_url.startswith(("postgresql://", "postgres://")) else "sqlite"
